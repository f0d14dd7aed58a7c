"""What a person who has never read the docs sees: states, removals, words and layout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.conftest import day
from tests.serve.slot_judge import judging_memory
from tests.serve.web.conftest import changing_memory
from tests.serve.web.serving import serving
from tests.serve.web.test_dashboard import ask, path, rows

SIZES = {"desktop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(params=SIZES)
def sized(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height})
    yield context.new_page()
    context.close()


def test_a_memory_that_nobody_judged_is_not_called_current(page: Page, tmp_path: Path) -> None:
    with judging_memory(tmp_path / "m.db") as memory, serving(memory) as site:
        memory.add("My tea is green.", user_id="ana", at=day(1))
        memory.judge()
        memory.add("I live in Porto.", user_id="ana", at=day(2))
        memory.add("I live in Lyon.", user_id="ana", at=day(3))
        page.goto(f"{site}/#user_id=ana")
        expect(page.locator("#timeline-count")).to_have_text("3 memories, 2 not judged yet")
        for text in ("Porto", "Lyon"):
            expect(rows(page, text)).to_have_attribute("aria-label", re.compile("^Not judged yet"))
            expect(rows(page, text).locator(".meta")).to_contain_text("not judged yet")
            expect(rows(page, text).locator(".glyph.unjudged")).to_have_count(1)
        expect(rows(page, "tea")).to_have_attribute("aria-label", re.compile("^Current"))
        hint = page.locator("#timeline-hint")
        expect(hint).to_contain_text("The server judges in the background")
        expect(hint.locator("code")).to_have_text(["--oracle", "gcmem judge"])
        rows(page, "Porto").click()
        expect(page.locator("#inspector")).to_contain_text("nobody knows whether this is still")

        # A question judges what it reads.
        ask(page, "Where do I live?")
        expect(rows(page, "Porto")).to_have_attribute("aria-label", re.compile("^Outdated"))
        expect(rows(page, "Lyon")).to_have_attribute("aria-label", re.compile("^Current"))
        expect(page.locator("#timeline-count")).to_have_text("3 memories, 1 outdated")
        expect(hint).to_be_hidden()
        expect(page.locator("#inspector")).to_contain_text("Replaced 2026-01-04")


def test_what_a_question_found_is_told_of_a_memory_further_down(page: Page, tmp_path: Path) -> None:
    with changing_memory(tmp_path / "m.db") as memory:
        memory.add("city=Porto", user_id="ana", at=day(0))
        memory.add([f"note {n}" for n in range(700)], user_id="ana", at=day(1))
        memory.add("city=Lyon", user_id="ana", at=day(2))
        with serving(memory) as site:
            page.goto(f"{site}/#user_id=ana")
            expect(rows(page, "city=Lyon")).to_be_visible()
            ask(page, "city")
            path(page, "gcmem").locator(".removed .hit > button").first.click()
            inspector = page.locator("#inspector")
            expect(inspector.locator(".full")).to_have_text("city=Porto")
            expect(inspector).to_contain_text("Left out of this answer: see 2026-01-03")
            expect(inspector).to_contain_text("score 1.00, for this question only")
            expect(inspector).to_contain_text("Not judged yet")


def test_what_was_removed_is_seen_without_scrolling(browser: Browser, tmp_path: Path) -> None:
    width, height = SIZES["desktop"]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    long = " and so on, said at some length because people do" * 3
    with changing_memory(tmp_path / "m.db") as memory:
        for number in range(4):
            memory.add(f"s{number}=old{long}", user_id="ana", at=day(number))
            memory.add(f"s{number}=new{long}", user_id="ana", at=day(50 + number))
        memory.add([f"note {n}" for n in range(30)], user_id="ana", at=day(20))
        with serving(memory) as site:
            page.goto(f"{site}/#user_id=ana")
            ask(page, f"s0=old{long}")
            removed = path(page, "gcmem").locator(".removed")
            expect(removed.locator("h4")).to_have_text("Left out: 4 outdated memories")
            for number in range(4):
                hit = removed.locator(".hit", has_text=f"s{number}=old")
                expect(hit.locator("button").first).to_be_in_viewport(ratio=1)
                expect(hit.locator(".witness-link")).to_contain_text(f"s{number}=new")
                expect(hit.locator(".witness-link")).to_be_in_viewport(ratio=1)
    context.close()


def answer(body: str, route: Route) -> None:
    route.fulfill(content_type="application/json", body=body)


def test_the_conflict_model_is_described_in_plain_words(page: Page, tmp_path: Path) -> None:
    replies = {
        ("optimal", True): "removes outdated memories",
        ("marginal", True): "removes outdated memories",
        ("marginal", False): "marks outdated memories, removes none",
        ("unfit", False): "marks outdated memories, removes none",
        (None, False): "marks outdated memories, removes none",
        (None, True): "removes outdated memories",
    }
    with changing_memory(tmp_path / "m.db") as memory, serving(memory) as site:
        for (kind, may_remove), duty in replies.items():
            reply = {
                "id": "gcmem-kappa@9",
                "class": kind,
                "may_remove": may_remove,
                "rule": {"unfit_at_or_below": 0.5, "optimal_from": 0.9},
            }
            page.route("**/v1/qualify", partial(answer, json.dumps(reply)))
            page.goto(site)
            page.reload()
            oracle = page.locator("#oracle")
            expect(oracle).to_contain_text("Conflict model gcmem-kappa@9")
            expect(oracle).to_contain_text(duty)
            said = oracle.inner_text()
            assert not re.search(r"marginal|optimal|unfit|unqualified|oracle|shadow", said), said
            page.unroute("**/v1/qualify")


def test_the_fields_of_a_row_line_up(sized: Page, site: str) -> None:
    sized.goto(f"{site}/#user_id=ana")
    expect(rows(sized, "city=Lyon")).to_be_visible()
    fields = sized.locator("#ask-form :is(input, select, button)").evaluate_all(
        "all => all.map((e) => e.getBoundingClientRect()).map((b) => [b.top, b.bottom])"
    )
    labels = sized.locator("#ask-form label").evaluate_all(
        "all => all.map((e) => e.getBoundingClientRect().height)"
    )
    assert max(labels) - min(labels) < 1, labels  # none of them takes a second line
    for top, bottom in fields:
        # Two fields are in one row, or one is wholly above the other.
        others = [(t, b) for t, b in fields if t < bottom and top < b]
        assert all(abs(t - top) < 1 and abs(b - bottom) < 1 for t, b in others), fields


def test_the_page_fits_its_window(sized: Page, site: str) -> None:
    sized.goto(f"{site}/#user_id=ana&q=city&options=Porto,Lyon")
    expect(sized.locator("article.path .answer")).to_have_count(3)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert sized.evaluate(wide) <= 0
    heading, oracle = (sized.locator(s).bounding_box() for s in ("#ask-title", "#oracle"))
    assert heading is not None
    assert oracle is not None
    assert oracle["x"] + oracle["width"] <= sized.evaluate("innerWidth")


def test_texts_of_the_page_use_no_words_of_the_paper(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana&q=city&options=Porto,Lyon")
    expect(page.locator("article.path .answer")).to_have_count(3)
    rows(page, "city=Porto").first.click()
    said = page.locator("body").inner_text() + page.locator("body").evaluate(
        "b => [...b.querySelectorAll('[aria-label], [title], [placeholder]')]"
        ".map((e) => [e.ariaLabel, e.title, e.placeholder].join(' ')).join(' ')"
    )
    jargon = r"\b(shadow\w*|witness\w*|oracle|dominance|chunks?|stale|marginal)\b"
    assert re.findall(jargon, said, re.I) == []
    assert "κ" not in said
