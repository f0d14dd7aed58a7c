"""Without a framework installed, its integration names the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gcmem.integrations

TABLE = Path(__file__).parents[1] / "frameworks" / "frameworks.txt"
EXTRAS = {
    line.split()[0]: line.split()[1]
    for line in TABLE.read_text("utf-8").splitlines()
    if line and not line.startswith("#")
}


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_framework_is_an_error_that_names_the_extra(name: str) -> None:
    assert (Path(gcmem.integrations.__file__).parent / f"{name}.py").exists()
    done = subprocess.run(
        [sys.executable, "-c", f"import gcmem.integrations.{name}"], capture_output=True, text=True
    )
    error = done.stderr.splitlines()[-1]
    assert error.startswith("gcmem.errors.MissingExtraError")
    assert error.endswith(f"pip install 'gcmem[{EXTRAS[name]}]'")
