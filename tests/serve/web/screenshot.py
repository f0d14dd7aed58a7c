"""Takes the picture of the dashboard in the docs: python -m tests.serve.web.screenshot FILE"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from gcmem import Memory
from tests.serve.web.conftest import ARGUMENTS, find_chromium
from tests.serve.web.serving import serving
from tests.serve.web.story import USER, remember_story

QUESTION = "When do we open the shop?"
DOUBTFUL = "Guests on Saturday"


def pose(page: Page, address: str) -> None:
    """Asks when the shop opens, and selects a memory that may be outdated."""
    page.goto(f"{address}/#{urlencode({'user_id': USER, 'q': QUESTION})}")
    expect(page.locator("article.path .answer")).to_have_count(3)
    page.wait_for_load_state("networkidle")
    page.locator("#timeline").evaluate("host => (host.scrollTop = 1600)")
    page.locator("#timeline .row", has_text=DOUBTFUL).click()
    page.locator("#timeline").evaluate("host => (host.scrollTop += 90)")
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)


def main(target: Path) -> None:
    """Serves the story and takes the picture."""
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        remember_story(memory)
        with serving(memory) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme="light")
            pose(page, address)
            taken = Image.open(io.BytesIO(page.screenshot()))
            browser.close()
    # A palette takes a third of the space; this method keeps rare colours, such as the small bars.
    palette = taken.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE)
    palette.save(target, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
