from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from gcmem import Memory
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import NOW, day, same_slot
from tests.serve.web.serving import serving

# Room for a busy machine: nothing waits longer than it has to.
expect.set_options(timeout=20_000)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As root there is no sandbox, and without the rest it calls home at every start.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Returns the machine's own Chromium: no Python package carries one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for these tests; with GCMEM_REQUIRE_BROWSER, as in .ci/run, it must be there.

    It is closed before other packages run: an event loop of its own goes on as long as it does.
    """
    found = find_chromium()
    if found is None:
        why = "no Chromium on this machine (Debian: apt-get install chromium)"
        if os.environ.get("GCMEM_REQUIRE_BROWSER"):
            pytest.fail(why)
        pytest.skip(why)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new tab of its own; a script error or a breach of the content policy fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if "Content Security" in m.text else None)
    yield page
    context.close()
    assert errors == []


def changing_memory(path: Path) -> Memory:
    """A memory with the toy oracle, which may remove what it finds."""
    return Memory(
        path,
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        clock=lambda: NOW,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose user "ana" moved from Porto to Lyon on day 90, and drinks tea."""
    with changing_memory(tmp_path_factory.mktemp("site") / "m.db") as memory:
        for number in range(8):
            memory.add("city=Porto", user_id="ana", at=day(number * 10))
            memory.add(f"note {number}", user_id="ana", at=day(number * 10 + 1))
        memory.add("city=Lyon", user_id="ana", at=day(90), session="moving", speaker="ana")
        memory.add("drink=tea", user_id="ana", at=day(95))
        memory.judge()
        with serving(memory) as address:
            yield address
