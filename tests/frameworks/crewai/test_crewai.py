from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_example_recalls_what_is_still_true_and_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "with_crewai.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": ""},
    )
    plain, ours = done.stdout.split("recall:")
    assert "I live in Porto." in plain
    assert "I live in Porto." not in ours
    assert "I live in Lyon now." in ours
    assert "I'm allergic to peanuts." in ours
