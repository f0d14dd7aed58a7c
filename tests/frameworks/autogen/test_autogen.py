from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_example_shows_a_plain_memory_with_the_stale_fact_and_ours_without() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / "with_autogen.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    plain, ours = done.stdout.split("GCMemMemory:")
    assert "I live in Porto." in plain
    assert "I live in Porto." not in ours
    assert "I live in Lyon now." in ours
    assert "I'm allergic to peanuts." in ours
