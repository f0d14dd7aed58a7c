from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gcmem import Chunk, Memory, Settings
from gcmem.errors import InvalidInputError
from gcmem.judge.ahead import Judged
from gcmem.protocols import Store
from gcmem.retrieve import retrieve
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.testing.ledger_suite import verdict
from gcmem.types import CandidateSet, ChunkFilter
from tests.conftest import newer_ends

ENCODER = HashEncoder()
START = datetime(2026, 1, 1, tzinfo=UTC)


def day(n: int) -> datetime:
    return START + timedelta(days=n)


def filled(*texts: str) -> Store:
    store = open_embedded(":memory:", encoder=ENCODER, stm_size=5)
    chunks = [
        Chunk(id=str(n), text=text, at=day(n), recorded_at=day(n)) for n, text in enumerate(texts)
    ]
    store.append(chunks, ENCODER.encode(texts), encoder_id=ENCODER.id)
    return store


def edge(store: Store, older: int, newer: int) -> None:
    assert store.ledger is not None
    store.ledger.record([verdict(str(older), str(newer), oracle="rule@1")])


def found(store: Store, query: str, *, as_of: datetime | None = None) -> CandidateSet:
    return retrieve(
        store,
        query=query,
        queries=ENCODER.encode([query]),
        k=2,
        pool=4,
        where=ChunkFilter(as_of=as_of),
        strategy="dense",
        judge="rule@1",
    )


def test_a_chain_of_edges_leads_to_the_present() -> None:
    store = filled("lives in porto", "moved away", "and again", *["rain"] * 5)
    edge(store, 0, 1)
    edge(store, 1, 2)
    origins = {item.chunk.id: item.origin for item in found(store, "lives in porto")}
    assert origins["0"] == "mtm"
    assert origins["1"] == origins["2"] == "edge"


def test_edges_end_at_the_as_of_time() -> None:
    store = filled("lives in porto", "moved away", "and again")
    edge(store, 0, 1)
    edge(store, 1, 2)
    origins = {i.chunk.id: i.origin for i in found(store, "lives in porto", as_of=day(1))}
    assert "2" not in origins


def test_edges_stay_within_the_pool() -> None:
    store = filled("lives in porto", *[f"moved away {n}" for n in range(9)])
    for n in range(9):
        edge(store, 0, n + 1)
    assert len(found(store, "lives in porto")) <= 4


def test_a_circle_of_edges_ends() -> None:
    store = filled("lives in porto", "moved away")
    edge(store, 0, 1)
    edge(store, 1, 0)
    assert {item.chunk.id for item in found(store, "lives in porto")} == {"0", "1"}


def test_erasing_a_chunk_erases_its_verdicts(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", encoder=ENCODER, oracle=RuleOracle(lambda a, b: True),
                require_qualified=False) as memory:  # fmt: skip
        first, second = (memory.add(text, at=day(n))[0] for n, text in enumerate(("a x", "a y")))
        memory.judge()
        assert newer_ends(memory.store, memory.judging.id, [first.id]) == {first.id: [second.id]}
        memory.delete(second.id)
        assert newer_ends(memory.store, memory.judging.id, [first.id]) == {}


def test_judging_ahead_finds_what_a_search_would_miss() -> None:
    oracle = RuleOracle(lambda a, b: "tea=old" in a.text and "switched" in b.text)
    with Memory(
        ":memory:",
        encoder=ENCODER,
        oracle=oracle,
        require_qualified=False,
        settings=Settings(strategy="dense", overfetch=1),
        clock=lambda: day(99),
    ) as memory:
        for n in range(6):
            memory.add(f"tea=old {n}", at=day(n))
        memory.add("switched to tea=new", at=day(7))
        for n in range(20):
            memory.add(f"rain again {n}", at=day(8 + n))
        assert memory.judge(limit=5) == Judged(judged=5, conflicts=0)
        seen: list[tuple[int, int]] = []
        found = memory.judge(progress=lambda done, total: seen.append((done, total)))
        assert found == Judged(judged=22, conflicts=6)
        assert seen[-1] == (22, 22)
        assert memory.judge() == Judged(judged=0, conflicts=0)
        result = memory.search("tea=old 3", k=3)
        assert {shadow.witness.origin for shadow in result.shadows} == {"edge"}
        assert all(not item.chunk.text.startswith("tea=old") for item in result.kept)


def test_a_store_without_a_ledger_can_not_judge_ahead() -> None:
    store = filled("a")
    bare = Store(log=store.log, index=store.index, buffer=store.buffer)
    with (
        Memory(store=bare, encoder=ENCODER, oracle=RuleOracle(lambda a, b: False),
               require_qualified=False) as memory,
        pytest.raises(InvalidInputError, match="can't keep verdicts"),
    ):  # fmt: skip
        memory.judge()
