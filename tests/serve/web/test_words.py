"""A person's word: the buttons of the inspector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from gcmem import Memory
from gcmem.serve.keys import KeyStore
from gcmem.types import Scope
from tests.conftest import day
from tests.serve.slot_judge import judging_memory
from tests.serve.web.serving import serving
from tests.serve.web.test_dashboard import ask, path, rows

OLD, NEW = "I live in Porto.", "I live in Lyon."
GREEN, BLACK = "My tea is green.", "My tea is perhaps black."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with judging_memory(tmp_path / "m.db") as memory:
        for number, text in enumerate((OLD, NEW, GREEN, BLACK)):
            memory.add(text, user_id="ana", at=day(number))
        memory.judge()
        yield memory


@pytest.fixture
def opened(page: Page, memory: Memory) -> Iterator[Page]:
    with serving(memory) as site:
        page.goto(f"{site}/#user_id=ana")
        expect(rows(page, OLD)).to_be_visible()
        yield page


def button(page: Page, name: str) -> Locator:
    return page.locator("#inspector").get_by_role("button", name=name, exact=True)


def expect_state(page: Page, text: str, state: str) -> None:
    expect(rows(page, text)).to_have_attribute("aria-label", re.compile(f"^{state}"))


def test_a_doubtful_memory_is_confirmed_as_outdated_and_that_is_undone(opened: Page) -> None:
    rows(opened, GREEN).click()
    button(opened, "Yes, outdated").click()
    expect_state(opened, GREEN, "Outdated")
    expect(opened.locator("#inspector")).to_contain_text("Said by user")
    expect(opened.locator("#inspector .full.shadow")).to_have_text(GREEN)
    expect(button(opened, "Yes, outdated")).to_have_count(0)
    expect(button(opened, "No, still true")).to_be_visible()
    button(opened, "Undo").click()
    expect_state(opened, GREEN, "May be outdated")
    expect(opened.locator("#inspector")).to_contain_text("score 0.60")
    expect(button(opened, "Undo")).to_have_count(0)


def test_an_outdated_memory_is_said_to_be_true_and_that_is_undone(opened: Page) -> None:
    expect_state(opened, OLD, "Outdated")
    rows(opened, OLD).click()
    button(opened, "No, still true").click()
    expect_state(opened, OLD, "Current")
    expect_state(opened, NEW, "Current. ")
    said = opened.locator("#inspector .quote", has_text="Said to be still true, despite")
    expect(said).to_contain_text(NEW)
    expect(opened.locator("#timeline-count")).to_have_text("4 memories, 1 doubtful")
    button(opened, "Undo").click()
    expect_state(opened, OLD, "Outdated")
    expect(opened.locator("#inspector")).to_contain_text("Replaced 2026-01-02")


def test_a_word_is_kept_by_the_server(opened: Page, memory: Memory) -> None:
    rows(opened, OLD).click()
    button(opened, "No, still true").click()
    expect_state(opened, OLD, "Current")
    hits = memory.search("Where do I live?", user_id="ana")
    assert {hit.chunk.text for hit in hits.kept} >= {OLD, NEW}
    opened.reload()
    expect_state(opened, OLD, "Current")
    rows(opened, OLD).click()
    expect(opened.locator("#inspector")).to_contain_text("Said to be still true, despite")
    button(opened, "Undo").click()
    expect_state(opened, OLD, "Outdated")


def test_what_was_said_and_pinned_elsewhere_is_shown(opened: Page, memory: Memory) -> None:
    old, new, green, _ = memory.get_all(user_id="ana")
    memory.reject(old.id, new.id, by="Bob")
    memory.pin(green.id, by="Bob")
    opened.reload()
    rows(opened, OLD).click()
    expect(button(opened, "Undo")).to_be_visible()
    expect(button(opened, "Pin")).to_be_visible()
    expect(rows(opened, GREEN).locator(".pinned")).to_have_text("pinned")
    rows(opened, GREEN).click()
    button(opened, "Unpin").click()
    expect(button(opened, "Pin")).to_be_visible()
    expect(rows(opened, GREEN).locator(".pinned")).to_have_count(0)


def test_a_word_changes_the_answer_that_is_shown(opened: Page) -> None:
    ask(opened, "Where do I live?")
    gcmem = path(opened, "gcmem")
    expect(gcmem.locator(".removed")).to_contain_text(OLD)
    gcmem.locator(".removed .hit > button").first.click()
    button(opened, "No, still true").click()
    expect(gcmem.locator(".removed")).to_have_count(0)
    expect(gcmem.locator(".hit.current", has_text=OLD)).to_have_count(1)
    button(opened, "Undo").click()
    expect(gcmem.locator(".removed")).to_contain_text(OLD)


def test_a_pin_keeps_a_memory_and_can_be_taken_back(opened: Page, memory: Memory) -> None:
    rows(opened, OLD).click()
    button(opened, "Pin").click()
    expect(button(opened, "Unpin")).to_be_visible()
    expect(opened.locator("#inspector")).to_contain_text("Pinned: never left out.")
    expect_state(opened, OLD, "May be outdated. Pinned.")
    expect(rows(opened, OLD).locator(".pinned")).to_have_text("pinned")
    assert OLD in {c.chunk.text for c in memory.search("Where do I live?", user_id="ana").kept}
    button(opened, "Unpin").click()
    expect(button(opened, "Pin")).to_be_visible()
    expect_state(opened, OLD, "Outdated")


def test_a_memory_that_nothing_speaks_against_has_only_the_pin(opened: Page) -> None:
    rows(opened, NEW).click()
    expect(button(opened, "Pin")).to_be_visible()
    for name in ("Yes, outdated", "No, still true", "Undo"):
        expect(button(opened, name)).to_have_count(0)


def test_the_buttons_work_by_keyboard_and_the_focus_stays_with_them(opened: Page) -> None:
    opened.locator("#timeline").focus()
    for _ in range(2):
        opened.keyboard.press("ArrowDown")
    expect(opened.locator("#timeline .row.active")).to_contain_text(GREEN)
    for name in ("Pin", None, "Yes, outdated"):
        opened.keyboard.press("Tab")
        if name:
            expect(button(opened, name)).to_be_focused()
    opened.keyboard.press("Enter")
    expect(button(opened, "Undo")).to_be_focused()
    opened.keyboard.press("Space")
    expect(button(opened, "Yes, outdated")).to_be_focused()
    opened.keyboard.press("Shift+Tab")
    opened.keyboard.press("Shift+Tab")
    opened.keyboard.press("Enter")
    expect(button(opened, "Unpin")).to_be_focused()


def test_a_word_that_the_server_refuses_is_told_and_can_be_said_again(
    opened: Page, memory: Memory
) -> None:
    rows(opened, OLD).click()
    (newer,) = (c for c in memory.get_all(user_id="ana") if c.text == NEW)
    memory.forget(ids=[newer.id])
    button(opened, "Yes, outdated").click()
    expect(opened.locator("#error")).to_contain_text(newer.id)
    expect(button(opened, "Yes, outdated")).to_be_enabled()


def test_a_key_that_may_not_write_sees_no_buttons(
    page: Page, memory: Memory, tmp_path: Path
) -> None:
    keys = KeyStore(tmp_path / "keys.db")
    _, reads = keys.create("reader", scope=Scope(user_id="ana"), read_only=True)
    _, untrusted = keys.create("tool", scope=Scope(user_id="ana"), untrusted=True)
    _, writes = keys.create("writer", scope=Scope(user_id="ana"))
    with serving(memory, keys=keys) as site:
        page.goto(site)
        for secret, shown in (
            (reads, 0),
            (untrusted, 0),
            (writes, 3),
        ):
            page.evaluate("key => sessionStorage.setItem('gcmem-api-key', key)", secret)
            page.reload()
            rows(page, OLD).click()
            expect(page.locator("#inspector")).to_contain_text("Replaced 2026-01-02")
            expect(page.locator("#inspector [data-act]")).to_have_count(shown)


def test_an_untrusted_key_may_speak_about_untrusted_memories(page: Page, tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.db")
    _, secret = keys.create("tool", scope=Scope(user_id="ana"), untrusted=True)
    with judging_memory(tmp_path / "m.db") as memory:
        memory.add(OLD, user_id="ana", at=day(1), trust=0)
        memory.add(NEW, user_id="ana", at=day(2), trust=0)
        memory.judge()
        with serving(memory, keys=keys) as site:
            page.goto(site)
            page.evaluate("key => sessionStorage.setItem('gcmem-api-key', key)", secret)
            page.reload()
            rows(page, OLD).click()
            button(page, "No, still true").click()
            expect_state(page, OLD, "Current")
            expect(button(page, "Pin")).to_have_count(0)


def test_a_word_about_a_memory_further_down_is_shown_at_once(page: Page, tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db") as memory:
        memory.add(OLD, user_id="ana", at=day(1))
        memory.add(NEW, user_id="ana", at=day(2))
        memory.judge()
        memory.add([f"note {n}" for n in range(700)], user_id="ana", at=day(3))
        with serving(memory) as site:
            page.goto(f"{site}/#user_id=ana")
            ask(page, "Where do I live?")
            path(page, "gcmem").locator(".removed .hit > button", has_text=OLD).click()
            inspector = page.locator("#inspector")
            expect(inspector.locator(".full.shadow")).to_have_text(OLD)
            button(page, "No, still true").click()
            expect(inspector.locator(".full.current")).to_have_text(OLD)
            button(page, "Undo").click()
            expect(inspector.locator(".full.shadow")).to_have_text(OLD)
            button(page, "Pin").click()
            expect(button(page, "Unpin")).to_be_visible()


def test_the_selection_and_the_place_stay_after_a_word(page: Page, tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db") as memory:
        memory.add(OLD, user_id="ana", at=day(1))
        memory.add(NEW, user_id="ana", at=day(2))
        memory.judge()
        memory.add([f"note {n}" for n in range(150)], user_id="ana", at=day(3))
        with serving(memory) as site:
            page.goto(f"{site}/#user_id=ana")
            timeline = page.locator("#timeline")
            timeline.evaluate("host => (host.scrollTop = host.scrollHeight)")
            expect(page.locator("#timeline-count")).to_contain_text("152 memories,")
            timeline.evaluate("host => (host.scrollTop = host.scrollHeight)")
            rows(page, OLD).click()
            before = timeline.evaluate("host => host.scrollTop")
            button(page, "No, still true").click()
            expect_state(page, OLD, "Current")
            expect(page.locator("#timeline .row.active")).to_contain_text(OLD)
            expect(page.locator("#timeline-count")).to_contain_text("152 memories,")
            assert abs(timeline.evaluate("host => host.scrollTop") - before) < 100
