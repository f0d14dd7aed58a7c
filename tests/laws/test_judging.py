"""The laws of judging ahead: when and in which order claims are judged changes nothing."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gcmem import Memory, SearchResult, Settings, Turn
from gcmem.ingest.claims import EveryStatement
from gcmem.judge.ahead import Judging
from gcmem.judge.by_oracle import EVERY_NEIGHBOUR
from gcmem.protocols import Encoder, Reads, Ruling, Store, Vectors
from gcmem.retrieve import neighbours
from gcmem.store import open_embedded
from gcmem.store.sqlite.log import SQLiteLog
from gcmem.testing import HashEncoder
from gcmem.types import Chunk, ChunkFilter, Claim, JudgeKind, Scope, Timings
from tests.conftest import NOW, day

ENCODER = HashEncoder()
CLAIM = re.compile(r"my (\w+) is (\w+)")
SCORES = {"perhaps": 0.6, "hardly": 0.2}
"""How sure the judge of the tests is of some values; of all others it is quite sure."""
EVERYTHING = ChunkFilter()


class RuleJudge:
    """Judges "my city is porto" against "my city is lyon"; the newer value says how surely."""

    kind: JudgeKind = "model"
    sure, likely, floor = 0.9, 0.5, 0.1

    def __init__(self, id: str = "rule@1", *, reads: Reads = EVERY_NEIGHBOUR) -> None:
        self.id = id
        self.reads = reads
        self.ruled: list[tuple[str, str]] = []

    def rule(self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = "") -> Sequence[Ruling]:
        return [self.ruling(*pair) for pair in pairs]

    def ruling(self, older: Claim, newer: Claim) -> Ruling:
        self.ruled.append((older.id, newer.id))
        a, b = CLAIM.search(older.text), CLAIM.search(newer.text)
        if a is None or b is None or a[1] != b[1] or a[2] == b[2]:
            return Ruling(0.0)
        return Ruling(SCORES.get(b[2], 0.95), reason=f"{older.text} / {newer.text}")


def judging_of(store: Store, judge: RuleJudge | None = None) -> Judging:
    """Judges every statement of a store, each against all that are near."""

    def near(text: str, vector: Vectors, where: ChunkFilter) -> list[Chunk]:
        return neighbours(store, text, vector, where, k=20, lexical_weight=0.5)

    return Judging(
        store,
        detector=EveryStatement(ENCODER),
        judge=judge or RuleJudge(),
        neighbours=near,
        clock=lambda: NOW,
    )


def every_statement(_: Encoder) -> EveryStatement:
    """Takes the place of the shipped detector, which needs a model."""
    return EveryStatement(ENCODER)


@contextmanager
def remembering(
    path: Path | str | None = ":memory:", *, judge: RuleJudge | None = None, **choices: Any
) -> Iterator[Memory]:
    """A memory that judges ahead, by the rules of `RuleJudge`; by default when it is told to."""
    given = {"judge": "manual", "judge_budget_ms": 60_000, **choices.pop("settings", {})}
    with (
        patch("gcmem.defaults.ClaimDetector", every_statement),
        Memory(
            path,
            encoder=ENCODER,
            judge=judge or RuleJudge(),
            settings=Settings(**given),
            require_qualified=False,
            clock=choices.pop("clock", lambda: NOW),
            **choices,
        ) as memory,
    ):
        yield memory


@dataclass(frozen=True)
class Said:
    """A message of one or two sentences, and when it was said."""

    text: str
    day: int
    user: str | None = "ana"


sentences = st.builds(
    "my {} is {}.".format,
    st.sampled_from(("diet", "city", "port")),
    st.sampled_from(("1", "2", "3", "perhaps", "hardly")),
)
texts = st.one_of(sentences, st.builds("{} {}".format, sentences, sentences))
saids = st.builds(
    Said, text=texts, day=st.integers(0, 9), user=st.sampled_from(("ana", "ana", "bob"))
)
streams = st.lists(saids, min_size=1, max_size=12)
one_users = st.lists(st.builds(Said, text=texts, day=st.integers(0, 9)), min_size=1, max_size=12)


def chunk_of(number: int, said: Said) -> Chunk:
    return Chunk(
        id=f"c{number}",
        text=said.text,
        at=day(said.day),
        recorded_at=NOW,
        scope=Scope(user_id=said.user),
    )


def append(store: Store, stream: Sequence[Said], *, first: int = 0) -> None:
    """Stores messages under the ids c0, c1 and so on."""
    chunks = [chunk_of(number, said) for number, said in enumerate(stream, first)]
    store.append(
        chunks, ENCODER.encode([f"user: {chunk.text}" for chunk in chunks]), encoder_id=ENCODER.id
    )


@contextmanager
def filled(stream: Sequence[Said] = (), path: Path | str = ":memory:") -> Iterator[Store]:
    store = open_embedded(path, encoder=ENCODER, stm_size=10)
    try:
        append(store, stream)
        yield store
    finally:
        store.close()


def rows_of(store: Store) -> Counter[Any]:
    """Returns every verdict in the file, also those that a later one replaces."""
    assert isinstance(store.log, SQLiteLog)
    with store.log.reading() as connection:
        return Counter(
            connection.execute(
                "SELECT older, older_first, older_last, newer, newer_first, newer_last, judge, "
                "score, reason FROM verdicts"
            ).fetchall()
        )


def waiting(store: Store, judging: Judging) -> list[Chunk]:
    """Returns the chunks that have no mark of the judge."""
    assert store.ledger is not None
    chunks = list(store.log.scan(EVERYTHING))
    judged = store.ledger.judged(judging.id, [chunk.seq or 0 for chunk in chunks])
    return [chunk for chunk in chunks if chunk.seq not in judged]


Step = Callable[[Store, Judging, random.Random], None]


def run_a_few(store: Store, judging: Judging, rng: random.Random) -> None:
    before, limit = judging.pending(), rng.randint(0, 5)
    assert judging.run(limit=limit).judged == min(before, limit)


def judge_some_now(store: Store, judging: Judging, rng: random.Random) -> None:
    chunks = list(store.log.scan(EVERYTHING))
    some = rng.sample(chunks, rng.randint(0, len(chunks)))
    assert judging.judge_now(some, budget_s=60) == []
    assert not {chunk.id for chunk in some} & {chunk.id for chunk in waiting(store, judging)}


def is_all_judged(store: Store, judging: Judging) -> bool:
    return not waiting(store, judging) and judging.pending() == 0 and judging.run().judged == 0


@settings(max_examples=60)
@given(streams, st.lists(st.sampled_from(["add", "run", "now"]), max_size=12), st.integers(0))
def test_order_and_batches_of_judging_change_nothing(
    stream: list[Said], plan: list[str], seed: int
) -> None:
    rng = random.Random(seed)
    with (
        filled(stream) as at_once,
        filled() as in_steps,
        patch("gcmem.judge.ahead.CHUNKS_PER_PAGE", 3),
    ):
        assert judging_of(at_once).run().judged == len(stream)
        added = 0
        for step in [*plan, "add all", "run all"]:
            judging = judging_of(in_steps)  # a new process, so to speak
            if step.startswith("add"):
                count = len(stream) - added if step == "add all" else rng.randint(0, 4)
                append(in_steps, stream[added : added + count], first=added)
                added = min(len(stream), added + count)
            elif step == "run all":
                judging.run()
            else:
                (run_a_few if step == "run" else judge_some_now)(in_steps, judging, rng)
        assert rows_of(in_steps) == rows_of(at_once)
        assert max(rows_of(in_steps).values(), default=1) == 1
        assert is_all_judged(in_steps, judging_of(in_steps))
        assert is_all_judged(at_once, judging_of(at_once))


@settings(max_examples=25)
@given(streams, st.integers(0))
def test_a_judge_reads_the_same_pairs_in_any_order_and_each_once(
    stream: list[Said], seed: int
) -> None:
    rng = random.Random(seed)
    ahead, now = RuleJudge(), RuleJudge()
    with filled(stream) as store, filled(stream) as other:
        judging_of(store, ahead).run()
        chunks = list(other.log.scan(EVERYTHING))
        rng.shuffle(chunks)
        for chunk in chunks:
            judging_of(other, now).judge_now([chunk], budget_s=60)
    assert len(set(ahead.ruled)) == len(ahead.ruled)
    assert sorted(ahead.ruled) == sorted(now.ruled)


def add(memory: Memory, number: int, said: Said) -> None:
    memory.add(Turn(text=said.text, at=day(said.day), id=f"c{number}"), user_id=said.user)


def read(memory: Memory, **how: Any) -> SearchResult:
    found = memory.search("my city", user_id="ana", **{"k": 50, **how})
    return replace(found, timings=Timings())


@settings(max_examples=40)
@given(streams, st.integers(0, 12))
def test_a_search_that_judges_finds_what_judging_ahead_finds(
    stream: list[Said], judged: int
) -> None:
    with remembering() as ahead, remembering() as on_the_spot:
        for number, said in enumerate(stream):
            add(ahead, number, said)
            add(on_the_spot, number, said)
            if number == judged:
                on_the_spot.judge()
        ahead.judge()
        first = read(on_the_spot)
        assert first.unjudged == ()
        assert first == read(ahead)
        assert read(on_the_spot) == first  # by kept verdicts now


@settings(max_examples=40)
@given(one_users, st.integers(1, 3), st.integers(0))
def test_so_it_does_with_a_few_candidates_if_all_that_wait_are_among_them(
    stream: list[Said], k: int, seed: int
) -> None:
    # In the order of the events: a late arrival may have a witness that is no candidate.
    stream = sorted(stream, key=lambda said: said.day)
    rng = random.Random(seed)
    few = {"overfetch": 1, "stm_size": 2}
    with remembering(settings=few) as ahead, remembering(settings=few) as on_the_spot:
        for number, said in enumerate(stream):
            add(ahead, number, said)
            add(on_the_spot, number, said)
        ahead.judge()
        known = [item.chunk.id for item in ahead.search("my city", user_id="ana", k=k).candidates]
        left = set(rng.sample(known, rng.randint(0, len(known))))
        others = [chunk for chunk in on_the_spot.get_all() if chunk.id not in left]
        on_the_spot.judging.judge_now(others, budget_s=60)
        found = read(on_the_spot, k=k)
        assume(left <= {item.chunk.id for item in found.candidates})
        assert found == read(ahead, k=k)


def outcome(result: SearchResult) -> tuple[Any, ...]:
    """What a search says, without the numbers of the log."""
    return (
        sorted((item.chunk.id, item.chunk.text) for item in result.kept),
        sorted(
            (s.claim.id, s.witness_claim.id) for s in result.shadows if s.claim and s.witness_claim
        ),
        sorted((d.claim.id, d.witness_claim.id) for d in result.doubtful),
    )


@settings(max_examples=40)
@given(one_users, st.integers(0, 9))
def test_as_of_sees_only_verdicts_of_claims_until_then(stream: list[Said], cut: int) -> None:
    with remembering() as whole, remembering() as prefix:
        for number, said in enumerate(stream):
            add(whole, number, said)
            if said.day <= cut:
                add(prefix, number, said)
        whole.judge()
        prefix.judge()
        assert outcome(read(whole, as_of=day(cut))) == outcome(read(prefix))
        then = whole.current(user_id="ana", as_of=day(cut), limit=None)
        assert {claim.id for claim in then} == {
            claim.id for claim in prefix.current(user_id="ana", limit=None)
        }


@settings(max_examples=40)
@given(one_users, st.integers(0, 11))
def test_known_at_sees_only_verdicts_of_claims_that_were_known(
    stream: list[Said], cut: int
) -> None:
    now = [NOW]
    with remembering(clock=lambda: now[0]) as whole, remembering(clock=lambda: now[0]) as prefix:
        for number, said in enumerate(stream):
            now[0] = NOW + timedelta(hours=number)
            add(whole, number, said)
            if number <= cut:
                add(prefix, number, said)
        whole.judge()
        prefix.judge()
        known = read(whole, known_at=NOW + timedelta(hours=cut))
        assert outcome(known) == outcome(read(prefix))


@settings(max_examples=40)
@given(one_users, st.randoms(use_true_random=False))
def test_a_late_arrival_is_judged_as_if_it_had_come_in_time(
    stream: list[Said], rng: random.Random
) -> None:
    # Every event has its own time, so that the order of arrival may not matter at all.
    numbered = [(number, replace(said, day=number)) for number, said in enumerate(stream)]
    late = rng.sample(numbered, len(numbered))
    with remembering() as in_order, remembering() as out_of_order:
        for number, said in numbered:
            add(in_order, number, said)
        for number, said in late:
            add(out_of_order, number, said)
            out_of_order.judge()
        in_order.judge()
        assert outcome(read(out_of_order)) == outcome(read(in_order))


class Moody(RuleJudge):
    """Sees half of the conflicts; each version sees others."""

    def ruling(self, older: Claim, newer: Claim) -> Ruling:
        ruling = super().ruling(older, newer)
        return ruling if crc32(f"{self.id} {older.id} {newer.id}".encode()) % 2 else Ruling(0.0)


@settings(max_examples=60)
@given(one_users, st.integers(0), st.integers(2, 3))
def test_until_a_new_judge_has_read_a_chunk_the_one_before_it_counts(
    stream: list[Said], seed: int, versions: int
) -> None:
    rng = random.Random(seed)
    judges = [Moody(f"moody@{version}") for version in range(versions)]
    with filled(stream) as store:
        read_by: dict[str, str] = {}
        for number, judge in enumerate(judges):
            judging = judging_of(store, judge)
            chunks = list(store.log.scan(EVERYTHING))
            some = chunks if number == 0 else rng.sample(chunks, rng.randint(1, len(chunks)))
            judging.judge_now(some, budget_s=60)
            read_by |= {chunk.id: judging.id for chunk in some}
        with remembering(store=store, path=None, judge=judges[-1]) as memory:
            stored = memory.get_all()
            assert memory.store.ledger is not None
            # A chunk was compared with those that were stored before it.
            counting = [
                verdict
                for verdict in memory.store.ledger.verdicts([chunk.id for chunk in stored])
                if verdict.oracle == read_by[max(verdict.older, verdict.newer, key=_number)]
            ]
            found = memory.outcomes(stored)
            assert {shadow.claim.id for shadow in found.shadows if shadow.claim} == {
                verdict.pair[0] for verdict in counting if verdict.score >= RuleJudge.sure
            }
            assert {
                (s.conflict.older, s.conflict.newer, s.conflict.oracle) for s in found.shadows
            } <= {(verdict.older, verdict.newer, verdict.oracle) for verdict in counting}
            assert set(found.unjudged) == {i for i, by in read_by.items() if by != judging.id}


def _number(chunk_id: str) -> int:
    return int(chunk_id[1:])
