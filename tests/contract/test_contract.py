"""What users rely on: exports, imports, the CLI's help, the examples in the docs."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gcmem
from gcmem import errors, types
from tests.contract.cli_reference import reference

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_exports_are_what_they_say_and_nothing_else() -> None:
    public = {n for n in vars(gcmem) if not n.startswith("_")}
    modules = {n for n in public if inspect.ismodule(getattr(gcmem, n))}
    assert public - modules == set(gcmem.__all__) - {"__version__"}
    for name in gcmem.__all__:
        assert name == "__version__" or getattr(gcmem, name).__doc__


def test_values_are_frozen_slotted_and_keyword_only() -> None:
    values = [
        value
        for value in vars(types).values()
        if dataclasses.is_dataclass(value) and isinstance(value, type)
    ]
    assert len(values) > 10
    for value in values:
        assert value.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert hasattr(value, "__slots__")
        assert all(field.kw_only for field in dataclasses.fields(value))


def test_every_error_is_in_the_drawing() -> None:
    drawn = set(re.findall(r"(\w+Error)\b", errors.__doc__ or ""))
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.GCMemError)
    }
    assert defined == drawn - {"ValueError", "KeyError", "ImportError"}


def test_importing_gcmem_imports_no_model_runtime_and_no_extra() -> None:
    code = (
        "import sys, gcmem; heavy = {'onnxruntime', 'tokenizers', 'openai', 'typer', 'rich', "
        "'torch', 'transformers', 'sentence_transformers', 'asyncio', 'gcmem.integrations'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_cli_page_is_what_the_cli_says() -> None:
    assert (ROOT / "docs" / "cli.md").read_text("utf-8") == reference(), "run: make docs"


# The code in integrations.md needs the frameworks: tests/frameworks runs it.
@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.stem != "integrations"], ids=lambda page: page.name
)
def test_examples_in_the_docs_run(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    if blocks:
        code = "\n".join(blocks)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": ""},
        )
        assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
