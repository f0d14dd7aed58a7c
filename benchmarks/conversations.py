"""Measures search on real conversations: evidence found, turns removed, and time.

    python benchmarks/conversations.py --locomo locomo10.json --longmemeval longmemeval_oracle.json

Reads the published files, or JSON lines with the same fields (.jsonl, .jsonl.xz). Every question of
LongMemEval gets a memory of its own sessions and ten of other questions. Prints for each set:
the evidence in the top ten before and after resolution, the evidence and outdated turns that
resolution removed or calls doubtful, how many turns a second were judged ahead, and the
milliseconds of a search by plain retrieval, with everything judged, when asked again, and with
nothing judged yet.
All settings are the product's defaults. No reader is used.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from gcmem import Memory, Settings, Turn
from gcmem.bench.data.datasets import locomo, longmemeval
from gcmem.bench.data.evidence import EXTRA_SESSIONS
from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.types import ChunkFilter, JudgeMode

K = 10
LOADERS = {"locomo": locomo.load, "longmemeval": longmemeval.load}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The result of one question; counts are numbers of turns."""

    evidence: int
    found_plain: int
    found: int
    evidence_removed: int
    evidence_doubtful: int
    outdated_plain: int
    outdated: int
    outdated_doubtful: int
    removed: int
    plain_ms: float
    judged_ms: float
    again_ms: float
    unjudged_ms: float


@dataclass(slots=True)
class Judged:
    """How long judging ahead took, over all memories."""

    turns: int = 0
    claims: int = 0
    turns_with_claims: int = 0
    seconds: float = 0.0


def ask(memory: Memory, instance: Instance, unjudged_ms: float) -> Asked:
    """Searches once and compares the top ten before and after resolution."""
    evidence = {turn.id for turn in instance.of_kind("new")}
    outdated = {turn.id for turn in instance.of_kind("old")}
    # The first search encodes the question and reads doubts with it; both are kept for the second.
    first = memory.search(instance.question, k=K, user_id="user").timings
    result = memory.search(instance.question, k=K, user_id="user")
    plain = {item.chunk.metadata["turn"] for item in result.candidates.items[:K]}
    kept = {item.chunk.metadata["turn"] for item in result.kept}
    gone = {s.candidate.chunk.metadata["turn"] for s in result.shadows}
    doubtful = {doubt.candidate.chunk.metadata["turn"] for doubt in result.doubtful}
    return Asked(
        evidence=len(evidence),
        found_plain=len(evidence & plain),
        found=len(evidence & kept),
        evidence_removed=len(evidence & plain & gone),
        evidence_doubtful=len(evidence & kept & doubtful),
        outdated_plain=len(outdated & plain),
        outdated=len(outdated & kept - gone),
        outdated_doubtful=len(outdated & kept & doubtful - gone),
        removed=len(gone),
        plain_ms=first.encode_ms + first.retrieve_ms,
        judged_ms=first.total_ms,
        again_ms=result.timings.total_ms,
        unjudged_ms=unjudged_ms,
    )


def measure(
    memories: Iterable[tuple[Sequence[BenchTurn], list[Instance]]], judged: Judged
) -> Iterator[Asked]:
    """Asks every question, first with nothing judged, then with everything."""
    for turns, questions in memories:
        with Memory(":memory:", settings=Settings(judge="manual")) as memory:
            memory.add(
                [
                    Turn(text=t.text, at=t.at, speaker=t.speaker, metadata={"turn": t.id})
                    for t in turns
                ],
                user_id="user",
            )
            started = time.perf_counter()
            # Not the question itself, whose vector the timed searches would find cached.
            memory.search(f"Tell me: {questions[0].question}", k=K, user_id="user")
            unjudged_ms = (time.perf_counter() - started) * 1000
            started = time.perf_counter()
            waiting = memory.pending()
            memory.judge()
            judged.seconds += time.perf_counter() - started
            judged.turns += round(len(turns) * waiting / memory.store.log.count(ChunkFilter()))
            claims = memory.current(user_id="user", limit=None)
            judged.claims += len(claims)
            judged.turns_with_claims += len({c.chunk.metadata["turn"] for c in claims})
            for instance in questions:
                yield ask(memory, instance, unjudged_ms)


def memories_of(
    name: str, instances: list[Instance], everything: list[Instance], seed: int
) -> Iterator[tuple[Sequence[BenchTurn], list[Instance]]]:
    """Yields the turns of each memory with its questions."""
    if name == "locomo":
        for _, group in groupby(instances, key=lambda i: [turn.text for turn in i.turns]):
            questions = list(group)
            yield questions[0].turns, questions
        return
    pool: dict[str | None, list[BenchTurn]] = {}
    for instance in everything:
        for session, said in groupby(instance.turns, key=lambda turn: turn.session):
            pool.setdefault(session, list(said))
    for instance in instances:
        own = {turn.session for turn in instance.turns}
        others = sorted(str(session) for session in pool if session not in own)
        extra = random.Random(f"{seed} {instance.id}").sample(
            others, min(EXTRA_SESSIONS, len(others))
        )
        turns = [*instance.turns, *(turn for session in extra for turn in pool[session])]
        yield turns, [instance]


def adding(instances: Sequence[Instance], *, turns: int = 300, rounds: int = 3) -> dict[str, float]:
    """Returns how many turns a second are added one by one, durably, with judging on and off."""
    said = [turn for instance in instances for turn in instance.turns][:turns]
    spent: dict[JudgeMode, list[float]] = {"background": [], "manual": []}
    for _ in range(rounds):
        for mode, seconds in spent.items():
            with (
                tempfile.TemporaryDirectory() as folder,
                Memory(Path(folder) / "m.db", settings=Settings(judge=mode)) as memory,
            ):
                memory.add("warm up", user_id="user")
                started = time.perf_counter()
                for turn in said:
                    memory.add(turn.text, at=turn.at, speaker=turn.speaker, user_id="user")
                seconds.append(time.perf_counter() - started)
    return {
        f"added_per_s_{'judging' if mode == 'background' else 'not_judging'}": round(
            len(said) / statistics.median(seconds), 1
        )
        for mode, seconds in spent.items()
    }


def summary(asked: list[Asked], judged: Judged) -> dict[str, float]:
    """Returns totals and search times over all questions."""
    rows = [asdict(a) for a in asked]
    total = {name: sum(row[name] for row in rows) for name in rows[0] if not name.endswith("_ms")}
    times = {
        f"{name.removesuffix('_ms')}_p50_ms": round(statistics.median(r[name] for r in rows), 1)
        for name in rows[0]
        if name.endswith("_ms")
    }
    return {
        "questions": len(asked),
        **total,
        **times,
        "turns_judged_per_s": round(judged.turns / judged.seconds, 1),
        "turns_with_a_claim": round(judged.turns_with_claims / max(1, judged.turns), 3),
        "claims_per_turn": round(judged.claims / max(1, judged.turns), 2),
    }


def main() -> None:
    """Measures the sets given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    for name in LOADERS:
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    parser.add_argument("--questions", type=int, default=100, help="questions drawn from each set")
    parser.add_argument("--updates", action="store_true", help="only questions about an update")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name, load in LOADERS.items():
        path = getattr(args, name)
        if path is None:
            continue
        everything = [i for i in load(path) if i.of_kind("new")]
        instances = [i for i in everything if not args.updates or i.of_kind("old")]
        drawn = sorted(
            random.Random(args.seed).sample(
                range(len(instances)), min(args.questions, len(instances))
            )
        )
        judged = Judged()
        chosen = [instances[n] for n in drawn]
        found = list(measure(memories_of(name, chosen, everything, args.seed), judged))
        print(
            json.dumps(
                {
                    "set": name,
                    **(summary(found, judged) if found else {"questions": 0}),
                    **adding(chosen),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
