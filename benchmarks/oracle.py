"""Measures the shipped κ: `make bench-oracle`. Prints a table and saves it in benchmarks/.

Candidate sets come from the families of a writer whose lines are not in the training data, one set
per family. "one topic": all chunks are about one topic, the worst case; "mixed": a fifth of them
are, as in a search. Cold: nothing is cached, not even the gate's vectors; warm: the verdicts are
cached. Last, whole searches: one update hidden among 80 other lines of that writer, searched with
Memory.search(k=10).
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from gcmem import Candidate, CandidateSet, Chunk, Memory, Turn
from gcmem.calls import ScopedCache, one_call
from gcmem.encode import CachedEncoder, MiniLMEncoder
from gcmem.judge import Focus, LocalClassifier, PairwiseOracle, TopicGate
from gcmem.store import SQLiteScores

TOPICS = Path(__file__).parent.parent / "training" / "corpus" / "w11.jsonl"
START = datetime(2026, 1, 1, tzinfo=UTC)
SEARCHES = 100


@dataclass(frozen=True, slots=True)
class Update:
    """A line that makes an older line untrue, and a question about both."""

    older: str
    newer: str
    question: str


@dataclass(frozen=True, slots=True)
class Topic:
    """The lines and updates about one attribute."""

    question: str
    lines: tuple[str, ...]
    updates: tuple[Update, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "oracle.json")
    arguments = parser.parse_args()
    topics = load_topics(TOPICS)
    classifier = LocalClassifier()
    encoder = MiniLMEncoder()
    classifier.score("warm", [("up", "both models are loaded")])
    encoder.encode(["warm up"])
    rows: dict[str, str] = {}
    for k in (10, 50):
        for kind in ("one topic", "mixed"):
            cold, warm = measure(classifier, encoder, topics, kind, k)
            rows[f"k = {k}, {kind}, cold"] = f"{cold:.0f} ms"
            rows[f"k = {k}, {kind}, warm"] = f"{warm:.1f} ms"
    rows |= whole_searches(topics)
    for name, value in rows.items():
        print(f"{name:<42} {value}")
    machine = {"python": platform.python_version(), "cores": psutil.cpu_count()}
    arguments.out.write_text(json.dumps({"machine": machine, **rows}, indent=2) + "\n")


def load_topics(path: Path) -> list[Topic]:
    """Reads the families of one writer."""
    topics = []
    for row in map(json.loads, path.read_text("utf-8").splitlines()):
        pairs = [*row["explicit"], *row["lookalikes"]]
        lines = [line for state in row["states"].values() for line in state] + row["neutral"]
        lines += [pair[end] for pair in pairs for end in ("older", "newer")]
        updates = [
            Update(pair["older"], pair["newer"], pair["question"])
            for pair in row["explicit"]
            if pair["question"]
        ]
        topics.append(Topic(row["questions"][0], tuple(dict.fromkeys(lines)), tuple(updates)))
    return topics


def measure(
    classifier: LocalClassifier,
    encoder: MiniLMEncoder,
    topics: list[Topic],
    kind: str,
    k: int,
) -> tuple[float, float]:
    """Returns the median milliseconds per judged set, cold and warm."""
    cold, warm = [], []
    for number in range(len(topics)):
        verdicts = SQLiteScores()
        cached = CachedEncoder(encoder)
        oracle = PairwiseOracle(
            classifier,
            threshold=classifier.threshold,
            gate=TopicGate(cached),
            focus=Focus(cached),
            cache=verdicts,
        )
        candidates = candidate_set(topics, number, kind=kind, k=k)
        kept = ScopedCache()
        cold.append(timed(oracle, candidates, kept))
        warm.append(timed(oracle, candidates, kept))
        verdicts.close()
    return statistics.median(cold), statistics.median(warm)


def whole_searches(topics: list[Topic]) -> dict[str, str]:
    """Hides updates among other lines and counts the chunks that a search removes and keeps."""
    rng = random.Random(1)
    updates = [(topic, update) for topic in topics for update in topic.updates]
    both = removed = wrong = rest = 0
    conflict_ms = []
    for _ in range(SEARCHES):
        topic, update = rng.choice(updates)
        # Not from the same topic: its other lines could be stale too.
        others = [line for other in topics if other is not topic for line in other.lines]
        texts = [t for t in rng.sample(others, 80) if t not in (update.older, update.newer)]
        texts.insert(rng.randrange(20), update.older)
        texts.insert(60, update.newer)
        turns = [Turn(text=t, at=START + timedelta(hours=n)) for n, t in enumerate(texts)]
        with Memory(":memory:") as memory:
            memory.add(turns)
            result = memory.search(update.question, k=10)
        shadowed = [shadow.candidate.chunk.text for shadow in result.shadows]
        candidates = {item.chunk.text for item in result.candidates}
        if {update.older, update.newer} <= candidates:
            both += 1
            removed += update.older in shadowed
        wrong += sum(text != update.older for text in shadowed)
        rest += len(candidates - {update.older})
        conflict_ms.append(result.timings.conflict_ms)
    return {
        "searches: both ends of the update found": f"{both} of {SEARCHES}",
        "searches: of these, the old one removed": f"{removed / both:.1%}",
        "searches: other candidates kept": f"{1 - wrong / rest:.1%}",
        "searches: κ, p50": f"{statistics.median(conflict_ms):.0f} ms",
    }


def candidate_set(topics: list[Topic], number: int, *, kind: str, k: int) -> CandidateSet:
    """Draws a candidate set about one topic."""
    rng = random.Random(number)
    topic = topics[number]
    elsewhere = [line for other in topics if other is not topic for line in other.lines]
    share = k if kind == "one topic" else k // 5
    texts = rng.sample(topic.lines, share) + rng.sample(elsewhere, k - share)
    rng.shuffle(texts)
    items = [
        Candidate(
            chunk=Chunk(id=str(n), text=text, at=START + timedelta(days=n), seq=n + 1),
            relevance=0.5,
            origin="mtm",
        )
        for n, text in enumerate(texts)
    ]
    return CandidateSet(query=topic.question, items=tuple(items))


def timed(oracle: PairwiseOracle, candidates: CandidateSet, kept: ScopedCache) -> float:
    started = time.perf_counter()
    with one_call(kept):
        oracle.judge(candidates)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
