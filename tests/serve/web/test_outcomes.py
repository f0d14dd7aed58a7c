"""What the page says about memories: current, outdated, doubtful, unjudged; and who says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import day
from tests.serve.slot_judge import judging_memory
from tests.serve.web.serving import serving
from tests.serve.web.test_dashboard import ask, path, rows

MIXED = "My cat is called Tom. I work at the bakery. I am allergic to nuts."
NOT_STRUCK = ("text-decoration-line", "none")
STRUCK = ("text-decoration-line", "line-through")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a memory of every kind; it judges nothing by itself."""
    folder = tmp_path_factory.mktemp("outcomes")
    with judging_memory(folder / "m.db", judge_budget_ms=0) as memory:
        for number, text in enumerate(
            (
                "I live in Porto.",
                MIXED,
                "My tea is green.",
                "I live in Lyon.",
                "My cat is Tim now.",
                "My tea is perhaps black.",
            )
        ):
            memory.add(text, user_id="ana", at=day(number))
        memory.judge()
        memory.add("My sister is a nurse.", user_id="ana", at=day(10))
        with serving(memory) as address:
            yield address


def test_every_state_has_words_and_a_mark_of_its_own(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    expect(page.locator("#timeline-count")).to_have_text(
        "7 memories, 1 outdated, 1 partly, 1 doubtful, 1 not judged yet"
    )
    for text, kind, spoken, words in (
        ("Porto", "shadow", "Outdated.", "replaced 2026-01-04"),
        ("bakery", "partly", "Partly outdated.", "partly replaced 2026-01-05"),
        ("green", "doubtful", "May be outdated.", "may be outdated: see 2026-01-06"),
        ("Lyon", "witness", "Current, replaces an older memory.", "replaces 1"),
        ("black", "current", "Current.", ""),
        ("nurse", "unjudged", "Not judged yet.", "not judged yet"),
    ):
        row = rows(page, text)
        expect(row.locator(f".glyph.{kind}")).to_have_count(1)
        expect(row).to_have_attribute("aria-label", re.compile(f"^{spoken}"))
        expect(row.locator(".meta")).to_contain_text(words)
        expect(page.locator(f".key .glyph.{kind}")).to_have_count(1)


def test_only_what_is_outdated_is_struck_out(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    expect(rows(page, "Porto").locator(".text")).to_have_css(*STRUCK)
    for text in ("bakery", "green", "Lyon", "black", "nurse"):
        expect(rows(page, text).locator(".text")).to_have_css(*NOT_STRUCK)
    ended = rows(page, "bakery").locator("s")
    expect(ended).to_have_text(["My cat is called Tom."])
    expect(ended).to_have_css(*STRUCK)
    expect(rows(page, "bakery").locator(".text")).to_have_text(MIXED)
    expect(rows(page, "green").locator("s")).to_have_count(0)
    rows(page, "bakery").click()
    expect(page.locator("#inspector .full s")).to_have_text(["My cat is called Tom."])
    expect(page.locator("#inspector .full")).to_have_text(MIXED)


def test_a_doubtful_memory_is_yellow(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    mark = rows(page, "green").locator(".glyph")
    red, green, blue = page.evaluate(
        "colour => colour.match(/\\d+/g).map(Number)",
        mark.evaluate("mark => getComputedStyle(mark).backgroundColor"),
    )
    assert min(red, green) > 180 > 2 * blue


def test_the_inspector_says_who_judged_how_sure_and_why(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    inspector = page.locator("#inspector")
    for text, relation, score in (
        ("Porto", "Replaced 2026-01-04", "1.00"),
        ("bakery", "Partly replaced 2026-01-05", "1.00"),
        ("green", "May be outdated: see 2026-01-06", "0.60"),
    ):
        rows(page, text).click()
        expect(inspector).to_contain_text(relation)
        expect(inspector).to_contain_text(
            f"Judged by the model slots@1 on gcmem-claims@1, score {score}"
        )
        expect(inspector).to_contain_text("Why: they begin alike")
    rows(page, "black").click()
    expect(inspector).to_contain_text("May replace 2026-01-03")


def test_the_keyboard_goes_from_a_doubtful_memory_to_the_newer_one_and_back(
    page: Page, site: str
) -> None:
    page.goto(f"{site}/#user_id=ana")
    rows(page, "green").click()
    page.locator("#timeline").focus()
    active = page.locator("#timeline .row.active")
    page.keyboard.press("Enter")
    expect(active).to_contain_text("black")
    expect(page.locator("#timeline .link.doubtful")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(active).to_contain_text("green")


def test_a_selected_memory_stays_in_sight_when_the_inspector_opens(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 620})
    page.goto(f"{site}/#user_id=ana")
    rows(page, "green").click()
    expect(page.locator("#inspector")).to_be_visible()
    row, host = rows(page, "green").bounding_box(), page.locator("#timeline").bounding_box()
    assert row is not None
    assert host is not None
    assert host["y"] <= row["y"]
    assert row["y"] + row["height"] <= host["y"] + host["height"]


def test_answers_tell_doubtful_and_unjudged_memories_apart_from_current_ones(
    page: Page, site: str
) -> None:
    page.goto(f"{site}/#user_id=ana")
    ask(page, "What is my tea like, and who is my sister?")
    gcmem = path(page, "gcmem")
    doubtful = gcmem.locator(".hit", has_text="My tea is green.")
    expect(doubtful.locator(".glyph.doubtful")).to_have_count(1)
    expect(doubtful.locator(".text")).to_have_css(*NOT_STRUCK)
    link = doubtful.locator(".witness-link")
    expect(link).to_have_text("may be outdated: see My tea is perhaps black.")
    unjudged = gcmem.locator(".hit", has_text="nurse")
    expect(unjudged.locator(".glyph.unjudged")).to_have_count(1)
    expect(unjudged).to_contain_text("not judged yet")
    expect(gcmem.locator(".reads")).to_contain_text("1 doubtful, 1 not judged yet")
    link.click()
    expect(page.locator("#timeline .row.active")).to_contain_text("black")


def test_what_the_reply_says_is_shown_of_memories_that_are_not_loaded(
    page: Page, site: str
) -> None:
    # Of a long timeline only the newest part is loaded: here, nothing.
    page.route("**/v1/history?*", lambda route: route.fulfill(json={"memories": [], "next": None}))
    page.goto(f"{site}/#user_id=ana&q=What+is+my+tea+like,+and+who+is+my+sister?")
    gcmem = path(page, "gcmem")
    doubtful = gcmem.locator(".hit", has_text="My tea is green.")
    expect(doubtful.locator(".witness-link")).to_contain_text("My tea is perhaps black.")
    expect(gcmem.locator(".hit.unjudged")).to_contain_text("My sister is a nurse.")


def test_a_true_sentence_is_never_struck_out_with_the_outdated_one(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    for question in ("What is my cat called?", "Where do I work, at the bakery? Any nuts?"):
        ask(page, question)
        everywhere = page.locator(".hit", has_text="bakery")
        expect(everywhere.first).to_be_visible()
        for hit in everywhere.all():
            expect(hit.locator(".text")).to_have_css(*NOT_STRUCK)
        for sentence in page.locator(".hit s").all():
            expect(sentence).not_to_contain_text("nuts")


def test_an_outdated_sentence_is_left_out_and_the_rest_is_read(page: Page, tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db") as memory:
        memory.add("I live in Porto. My cat is called Tom.", user_id="ana", at=day(1))
        memory.add("I live in Lisbon.", user_id="ana", at=day(2))
        with serving(memory) as site:
            page.goto(f"{site}/#user_id=ana")
            ask(page, "Where does my cat live?")
            gcmem = path(page, "gcmem")
            expect(gcmem.locator(".removed h4")).to_have_text("Left out: 1 outdated sentence")
            expect(gcmem.locator(".removed .text")).to_have_text("I live in Porto.")
            expect(gcmem.locator(".removed .text")).to_have_css(*STRUCK)
            read = gcmem.locator("[aria-label='What gcmem read'] .hit")
            expect(read.filter(has_text="Tom").locator(".text")).to_have_text(
                "My cat is called Tom."
            )
            plain = path(page, "standard").locator(".hit.partly")
            expect(plain.locator(".text")).to_have_text("I live in Porto. My cat is called Tom.")
            expect(plain.locator("s")).to_have_text("I live in Porto.")


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Where do I live?", "only what is still true"),
        ("Where did I live before?", "about the past: outdated ones too"),
        ("How has where I live changed?", "about a change: outdated ones too, oldest first"),
    ],
)
def test_the_column_says_whether_it_reads_what_is_outdated(
    page: Page, site: str, question: str, title: str
) -> None:
    page.goto(f"{site}/#user_id=ana")
    ask(page, question)
    gcmem = path(page, "gcmem")
    expect(gcmem.locator("header p")).to_have_text(title)
    is_current = title == "only what is still true"
    expect(gcmem.locator(".removed")).to_have_count(1 if is_current else 0)
    read = gcmem.locator("[aria-label='What gcmem read'] .hit", has_text="I live in Porto.")
    expect(read).to_have_count(0 if is_current else 1)
    if not is_current:  # what it reads is shown as outdated, with what replaced it
        expect(read.locator(".text")).to_have_css(*STRUCK)
        expect(read.locator(".witness-link")).to_have_text("→ I live in Lyon.")


def test_a_state_of_today_is_not_shown_of_another_day(page: Page, tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db") as memory:
        memory.add("I live in Porto.", user_id="ana", at=day(1))
        memory.add([f"note {n}" for n in range(700)], user_id="ana", at=day(2))
        memory.add("I live in Lyon.", user_id="ana", at=day(9))
        memory.judge()
        with serving(memory) as site:
            then = day(5).strftime("%Y-%m-%dT%H:%M:%SZ")
            page.goto(f"{site}/#user_id=ana&q=Where+do+I+live?&as_of={then}")
            hits = path(page, "gcmem").locator(".hit > button", has_text="I live in Porto.")
            hits.first.click()
            inspector = page.locator("#inspector")
            expect(inspector).to_contain_text("Too far down the timeline to show its state")
            expect(inspector).not_to_contain_text("Lyon")


def test_plain_search_says_how_it_is_ordered(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana&q=tea")
    expect(path(page, "standard").locator("header")).to_contain_text("most relevant first")
