from __future__ import annotations

import importlib
import sys

import pytest

from gcmem.errors import MissingExtraError


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("gcmem.integrations.openai_agents", "agents", "openai-agents"),
        ("gcmem.integrations.pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_a_missing_framework_is_an_error_that_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str, extra: str
) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == package or n == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"gcmem\[{extra}\]"):
        importlib.import_module(module)
