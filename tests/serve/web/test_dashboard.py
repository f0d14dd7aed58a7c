"""The dashboard as a person uses it, in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from gcmem.serve.keys import KeyStore
from gcmem.types import Scope
from tests.conftest import day
from tests.serve.web.conftest import changing_memory
from tests.serve.web.serving import serving

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 2'>",
    '"><svg onload=window.pwned=3>',
    "{{constructor.constructor('window.pwned=4')()}}",
    "javascript:window.pwned=5",
    "</p></div><h1 id=broken>" + "x" * 400,
)


def rows(page: Page, text: str) -> Locator:
    return page.locator("#timeline [role=option]", has_text=text)


def ask(page: Page, question: str, options: str = "") -> None:
    page.get_by_label("Question").fill(question)
    page.get_by_label("Options").fill(options)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("article.path .answer")).to_have_count(3)


def path(page: Page, name: str) -> Locator:
    return page.locator(f"article[data-path={name}]")


def test_current_and_outdated_memories_are_told_apart_without_colour(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    current, shadow = rows(page, "city=Lyon"), rows(page, "city=Porto").first
    expect(page.locator("#timeline-count")).to_have_text("18 memories, 8 outdated")
    expect(shadow).to_have_attribute("aria-label", re.compile("^Outdated.*by: city=Lyon"))
    expect(current).to_have_attribute("aria-label", re.compile("^Current"))
    expect(shadow.locator(".text")).to_have_css("text-decoration-line", "line-through")
    expect(current.locator(".text")).to_have_css("text-decoration-line", "none")
    expect(shadow).to_contain_text("replaced 2026-04-01")


def test_the_keyboard_goes_from_a_shadow_to_its_witness_and_back(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    expect(rows(page, "city=Lyon")).to_be_visible()
    page.locator("#timeline").focus()
    page.keyboard.press("End")
    active = page.locator("#timeline .row.active")
    expect(active).to_contain_text("city=Porto")
    oldest = active.get_attribute("data-id")
    page.keyboard.press("Enter")
    expect(active).to_contain_text("city=Lyon")
    expect(page.locator("#timeline")).to_have_attribute(
        "aria-activedescendant", active.get_attribute("id") or ""
    )
    expect(page.locator("#timeline .link")).to_have_count(1)
    expect(page.locator("#inspector")).to_contain_text("Replaces 2026-03-12")
    page.keyboard.press("Enter")
    expect(active).to_have_attribute("data-id", oldest or "")
    expect(page.locator("#timeline .link")).to_have_count(1)
    expect(page.locator("#inspector")).to_contain_text("Replaced 2026-04-01")
    expect(page.locator("#inspector")).to_contain_text("rule@1")
    page.keyboard.press("ArrowUp")
    expect(active).to_contain_text("note 0")
    page.keyboard.press("Escape")
    expect(active).to_have_count(0)
    expect(page.locator("#inspector")).to_be_hidden()


def test_a_click_on_the_verdict_jumps_to_the_witness_and_marks_both(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    rows(page, "city=Porto").first.locator(".jump").click()
    expect(page.locator("#timeline .row.active")).to_contain_text("city=Lyon")
    expect(page.locator("#timeline .row.paired")).to_have_text(
        [re.compile("Lyon"), re.compile("Porto")]
    )


def test_three_paths_answer_side_by_side(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    ask(page, "city", "Porto, Lyon")
    for name, said in (("standard", "Porto"), ("timestamp", "Porto"), ("gcmem", "Lyon")):
        expect(path(page, name).locator(".answer")).to_have_text(said)
    expect(path(page, "standard").locator(".reads")).to_contain_text("8 outdated")
    expect(path(page, "standard").locator(".hit.shadow").first).to_contain_text("city=Porto")
    removed = path(page, "gcmem").locator(".removed")
    expect(removed).to_contain_text("Left out: 8 outdated memories")
    expect(removed.locator(".hit").first).to_contain_text("conflict 1.00")
    expect(removed.locator(".witness-link").first).to_have_text("→ city=Lyon")
    removed.locator(".witness-link").first.click()
    expect(page.locator("#timeline .row.active")).to_contain_text("city=Lyon")


def test_timings_are_one_bar_with_a_part_for_each_stage(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana&q=city")
    stack = page.locator("#timings .stack")
    expect(stack.locator(".part")).to_have_count(5)
    expect(stack).to_have_attribute("aria-label", re.compile("encode .*ms, search .*answer"))
    width = stack.evaluate("bar => [...bar.children].reduce((w, p) => w + p.offsetWidth, 0)")
    assert width > 300


def test_the_conflict_model_is_named_with_how_well_it_did(page: Page, site: str) -> None:
    page.goto(site)
    expect(page.locator("#oracle")).to_contain_text("rule@1")
    expect(page.locator("#oracle .class")).to_contain_text("never measured")


def test_the_slider_moves_the_timeline_and_the_answers(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana&q=city&options=Porto,Lyon")
    expect(path(page, "gcmem").locator(".answer")).to_have_text("Lyon")
    page.get_by_role("slider").fill("500")
    expect(page.locator("#asof-label")).to_have_text(re.compile("^2026-02-17"))
    expect(path(page, "gcmem").locator(".answer")).to_have_text("Porto")
    expect(rows(page, "city=Lyon")).to_have_count(0)
    expect(page.locator("#timeline-count")).to_have_text(re.compile("^10 memories"))
    assert "as_of=2026-02-17" in page.url
    page.reload()
    expect(page.locator("#asof-label")).to_have_text(re.compile("^2026-02-17"))
    expect(path(page, "gcmem").locator(".answer")).to_have_text("Porto")
    page.get_by_role("button", name="Now", exact=True).click()
    expect(path(page, "gcmem").locator(".answer")).to_have_text("Lyon")
    expect(rows(page, "city=Lyon")).to_be_visible()
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    expect(page.locator("#timeline-count")).to_have_text(re.compile("^1 memory"))


def test_a_key_is_asked_for_and_binds_the_scope(page: Page, tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.db")
    _, secret = keys.create("anas laptop", scope=Scope(user_id="ana"))
    with changing_memory(tmp_path / "m.db") as memory:
        memory.add("mine", user_id="ana", at=day(1))
        memory.add("not mine", user_id="bob", at=day(2))
        with serving(memory, keys=keys) as site:
            page.goto(site)
            dialog = page.get_by_role("dialog")
            expect(dialog).to_be_visible()
            expect(page.get_by_label("API key", exact=True)).to_be_focused()
            page.keyboard.type("gcm_wrong_key")
            page.keyboard.press("Enter")
            expect(dialog.get_by_role("alert")).to_contain_text("missing, unknown or revoked")
            page.get_by_label("API key", exact=True).fill(secret)
            page.keyboard.press("Enter")
            expect(dialog).to_be_hidden()
            expect(rows(page, "mine")).to_have_count(1)
            expect(page.get_by_label("User")).to_have_value("ana")
            expect(page.get_by_label("User")).not_to_be_editable()
            expect(page.locator("#whoami")).to_have_text("key: anas laptop")
            page.reload()
            expect(rows(page, "mine")).to_have_count(1)
            assert secret not in page.url
            assert page.evaluate("JSON.stringify(localStorage)") == "{}"


def test_hostile_texts_are_only_texts(page: Page, tmp_path: Path) -> None:
    with changing_memory(tmp_path / "m.db") as memory:
        for number, text in enumerate(HOSTILE):
            memory.add(
                f"h{number}={text}",
                user_id="<b>ana</b>",
                at=day(number),
                session="<i>s</i>",
                speaker="<u>x</u>",
                metadata={"k": "<img src=x onerror=window.pwned=6>"},
            )
            memory.add(f"h{number}=<b>calm {number}</b>", user_id="<b>ana</b>", at=day(50 + number))
        with serving(memory) as site:
            page.goto(site)
            page.get_by_label("Results").fill("50")
            ask(page, HOSTILE[1], "<s>yes</s>, <s>no</s>")
            page.locator("details").evaluate_all("all => all.forEach((d) => (d.open = true))")
            expect(path(page, "gcmem").locator(".removed .hit")).to_have_count(len(HOSTILE))
            for number, text in enumerate(HOSTILE):
                row = rows(page, f"h{number}={text}")
                row.click()
                expect(page.locator("#inspector .full")).to_have_text(f"h{number}={text}")
                expect(row.locator(".text")).to_have_text(f"h{number}={text}")
            expect(page.locator("main :is(script, svg, img, i, u, b, #broken)")).to_have_count(0)
            assert page.evaluate("window.pwned") is None


def test_an_error_is_told_in_the_servers_words(page: Page, site: str) -> None:
    problem = {
        "type": "about:blank",
        "title": "The store is <b>busy</b>",
        "status": 503,
        "detail": "try again in a moment",
        "request_id": "abc-123",
    }

    def refuse(route: Route) -> None:
        kind = "application/problem+json"
        route.fulfill(status=503, content_type=kind, body=json.dumps(problem))

    page.route("**/v1/ask", refuse)
    page.goto(f"{site}/#user_id=ana&q=city")
    alert = page.locator("#error")
    expect(alert).to_contain_text("The store is <b>busy</b> try again in a moment request abc-123")
    page.unroute("**/v1/ask")
    ask(page, "city")
    expect(alert).to_be_hidden()


def test_a_page_that_did_not_load_can_be_asked_for_again(page: Page, tmp_path: Path) -> None:
    with changing_memory(tmp_path / "m.db") as memory:
        memory.add([{"role": "user", "content": f"n{i}"} for i in range(250)], at=day(1))
        with serving(memory) as site:
            page.route("**/v1/history?*before=*", lambda route: route.abort())
            page.goto(site)
            expect(rows(page, "n249")).to_be_visible()
            page.locator("#timeline").focus()
            page.keyboard.press("End")
            expect(page.locator("#error")).to_contain_text("can't be reached")
            expect(page.locator("#timeline .end")).to_contain_text("press End to try again")
            page.unroute("**/v1/history?*before=*")
            page.keyboard.press("End")
            expect(page.locator("#timeline-count")).to_contain_text("200 memories so far")


def test_an_empty_memory_says_what_to_do_first(page: Page, tmp_path: Path) -> None:
    with changing_memory(tmp_path / "m.db") as memory, serving(memory) as site:
        page.goto(site)
        expect(page.locator("#timeline")).to_contain_text("Nothing is remembered yet")
        expect(page.locator("#timeline pre")).to_contain_text(f"curl {site}/v1/memories")
        expect(page.locator("#paths")).to_contain_text("Ask something whose answer has changed")
        page.get_by_label("User").fill("bob")
        page.keyboard.press("Enter")
        expect(page.locator("#timeline")).to_contain_text("Check the spelling")
        page.get_by_label("Question").fill("anything?")
        page.keyboard.press("Enter")
        expect(page.locator("#paths")).to_contain_text("No memory to answer from")


def test_focus_moves_in_reading_order_and_can_be_seen(page: Page, site: str) -> None:
    page.goto(f"{site}/#user_id=ana")
    expect(rows(page, "city=Lyon")).to_be_visible()
    seen: list[str] = []
    for _ in range(30):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]"
        )
        seen.append(name)
        if name == "timeline":
            break
        # The parts inside a date field are drawn by the browser, with their own focus.
        assert outline != "none" or name == "asof-exact", name
    stops = ["user_id", "asof-slider", "question", "options", "ask-button", "timeline"]
    assert [stop for stop in seen if stop in stops] == stops
    border = page.locator("#timeline").evaluate("e => getComputedStyle(e).borderColor")
    assert border != "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_window_needs_no_sideways_scrolling(
    browser: Browser, site: str, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(f"{site}/#user_id=ana&q=city&options=Porto,Lyon")
    expect(page.locator("article.path .answer")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    path(page, "gcmem").locator(".hit button").first.click()
    expect(page.locator("#timeline .row.active")).to_be_in_viewport()
    context.close()


def test_the_theme_follows_the_system_until_it_is_chosen(browser: Browser, site: str) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(site)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light theme").click()
    light = page.evaluate(background)
    assert light != dark
    page.reload()
    assert page.evaluate(background) == light
    context.close()


def test_the_address_opens_the_same_view_again(page: Page, site: str) -> None:
    page.goto(site)
    page.get_by_label("User").fill("ana")
    ask(page, "city & co?", "Porto, Lyon")
    assert quote("city & co?", safe="").replace("%20", "+") in page.url
    page.reload()
    expect(page.get_by_label("Question")).to_have_value("city & co?")
    expect(page.locator("article.path .answer")).to_have_count(3)
