"""Runs the code in docs/integrations.md that belongs to one framework."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


def run_docs_example(framework: str) -> None:
    """Runs the blocks that start with "```python FRAMEWORK", together; raises if they fail."""
    blocks = re.findall(rf"```python {framework}\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert blocks, f"no example for {framework}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
