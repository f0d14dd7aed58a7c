from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "framework", "message"),
    [
        (
            "llamaindex",
            "llama_index",
            "llama-index-core is not installed; run: pip install 'gcmem[llamaindex]'",
        ),
        (
            "haystack",
            "haystack",
            "haystack-ai is not installed; run: pip install 'gcmem[haystack]'",
        ),
        ("dspy", "dspy", "dspy is not installed; run: pip install 'gcmem[dspy]'"),
    ],
)
def test_a_missing_framework_names_its_extra(module: str, framework: str, message: str) -> None:
    # None in sys.modules stands for a framework that is not there, wherever the test runs.
    code = (
        f"import sys; sys.modules[{framework!r}] = None\n"
        "from gcmem.errors import MissingExtraError\n"
        f"try: import gcmem.integrations.{module}\n"
        "except MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == message
