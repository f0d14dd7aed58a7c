"""The claim of the docs: a store of one's own is under test in ten lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "stores.md"

pytest_plugins = ["pytester"]


def example() -> str:
    """The lines of the docs that put a store under test."""
    (block,) = re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    return str(block)


def test_ten_lines_put_a_store_under_test(pytester: pytest.Pytester) -> None:
    code = example()
    assert len(code.strip().splitlines()) <= 10
    my_store = "from gcmem.store import open_embedded as open_my_store\n"
    pytester.makepyfile(my_store=my_store, test_mine=code)
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    outcome = result.parseoutcomes()
    assert outcome.keys() == {"passed"}
    assert outcome["passed"] > 60


def test_the_suite_notices_a_store_that_loses_chunks(pytester: pytest.Pytester) -> None:
    my_store = """
        from dataclasses import replace
        from gcmem.store import open_embedded

        class Forgetful:
            def __init__(self, log):
                self._log = log

            def __getattr__(self, name):
                return getattr(self._log, name)

            def scan(self, where, **options):
                return (chunk for chunk in self._log.scan(where, **options) if chunk.seq % 7)

        def open_my_store(path, **options):
            store = open_embedded(path, **options)
            return replace(store, log=Forgetful(store.log))
    """
    pytester.makepyfile(my_store=my_store, test_mine=example())
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-k", "pages")
    result.assert_outcomes(failed=2)
