"""What holds for every framework of the table: an extra, a tested version, an example, docs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "integrations.md"
ROWS = [
    line.split()
    for line in Path(__file__).with_name("frameworks.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
SECTIONS = [
    section
    for section in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.M)
    if "```python" in section
]


@pytest.mark.parametrize(("folder", "extra", "package"), ROWS, ids=lambda value: value)
def test_a_framework_has_an_extra_tests_and_a_tested_version(
    folder: str, extra: str, package: str
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert extra in project["optional-dependencies"]
    assert list((ROOT / "tests" / "frameworks" / folder).glob("test_*.py"))
    assert f"| `{package}` | {version(package)} |" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("folder", [row[0] for row in ROWS])
def test_its_example_shows_plain_against_gcmem(folder: str, tmp_path: Path) -> None:
    # Python looks for modules beside the script first: langgraph.py there would be in the way.
    names = (f"with_{folder}.py", f"{folder}.py")
    example = next(path for name in names if (path := ROOT / "examples" / name).exists())
    done = _run(["-W", "ignore", str(example)], tmp_path)
    assert {"plain", "gcmem"} <= set(re.findall(r"\w+", done.lower()))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_the_code_in_the_docs_runs(section: str, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", section, re.S)
    _run(["-W", "ignore", "-c", "\n".join(blocks)], tmp_path)


def _run(arguments: list[str], home: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=home,
        env={"HOME": str(home), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
