"""The timeline over a hundred thousand memories."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect

from gcmem import Memory
from gcmem.testing.ledger_suite import verdict
from gcmem.types import Chunk, Scope
from tests.conftest import NOW, day
from tests.serve.web.conftest import changing_memory
from tests.serve.web.serving import serving

MANY = 100_000
BATCH = 10_000
TEXT = "memory number {}"


def fill(memory: Memory) -> None:
    """Appends to the log directly: what is measured is reading."""
    random = np.random.default_rng(0)
    for start in range(0, MANY, BATCH):
        vectors = random.standard_normal((BATCH, 32), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        chunks = [
            Chunk(
                id=f"c{number}",
                text=TEXT.format(number),
                at=day(0) + timedelta(minutes=number),
                recorded_at=NOW,
                scope=Scope(user_id="ana"),
            )
            for number in range(start, start + BATCH)
        ]
        memory.store.append(chunks, vectors, encoder_id=memory.encoder.id)
    assert memory.store.ledger is not None
    whole = (0, len(TEXT.format(MANY)))
    memory.store.ledger.record(
        [
            verdict(f"c{n}", f"c{n + 3}", oracle=memory.judging.id, older_span=whole)
            for n in range(0, MANY - 3, 7)
        ]
    )


def test_the_timeline_opens_at_once_and_scrolls_with_a_small_document(
    page: Page, tmp_path: Path
) -> None:
    with changing_memory(tmp_path / "m.db") as memory:
        fill(memory)
        with serving(memory) as site:
            started = time.perf_counter()
            page.goto(f"{site}/#user_id=ana")
            expect(page.locator("#timeline [role=option]").first).to_contain_text("number 99999")
            first_rows_s = time.perf_counter() - started
            assert first_rows_s < 5
            timeline = page.locator("#timeline")
            for _ in range(20):
                timeline.evaluate("host => (host.scrollTop = host.scrollHeight)")
                page.wait_for_timeout(50)
            seen = page.locator("#timeline [role=option]")
            assert seen.count() < 60
            assert int(seen.last.get_attribute("data-index") or 0) > 500
            frame_ms = timeline.evaluate(SCROLL)
            assert frame_ms < 100
            page.get_by_role("slider").fill("3")
            expect(seen.first).to_contain_text("number 299")
            expect(page.locator("#timeline .row.shadow").first).to_be_visible()
            print(f"\nfirst rows {first_rows_s * 1000:.0f} ms, median frame {frame_ms:.0f} ms")


SCROLL = """async (host) => {
  const frames = [];
  let last = performance.now();
  for (let frame = 0; frame < 61; frame += 1) {
    host.scrollTop -= 400;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames.sort((a, b) => a - b)[30];
}"""
