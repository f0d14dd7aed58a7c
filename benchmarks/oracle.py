"""Measures the shipped κ: `make bench-oracle`. Prints a table and keeps it in benchmarks/.

Candidate sets are drawn from the pairs that `gcmem qualify` judges. "one topic": all chunks are
about one thing, the worst case; "mixed": a few are, as in a search. Cold: nothing is cached, the
gate's vectors included; warm: the verdicts are known. Last, whole searches: one update hidden among
80 other held-out lines, asked for with Memory.search(k=10).
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from gcmem import Candidate, CandidateSet, Chunk, Memory, Turn
from gcmem.conflict import LocalClassifier, PairwiseOracle, TopicGate
from gcmem.encode import CachedEncoder, MiniLMEncoder
from gcmem.qualify import SHIPPED_PAIRS, LabelledPair, load_pairs
from gcmem.store import SQLiteVerdicts

START = datetime(2026, 1, 1, tzinfo=UTC)
REPEATS = 7
SEARCHES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "oracle.json")
    arguments = parser.parse_args()
    everything = load_pairs(SHIPPED_PAIRS)
    pairs = [p for p in everything if p.category.startswith("explicit")]
    classifier = LocalClassifier()
    encoder = MiniLMEncoder()
    classifier.score("warm", [("up", "both models are loaded")])
    encoder.encode(["warm up"])
    rows: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for k in (10, 50):
            for kind in ("one topic", "mixed"):
                cold, warm = measure(classifier, encoder, pairs, kind, k, Path(folder))
                rows[f"k = {k}, {kind}, cold"] = f"{cold:.0f} ms"
                rows[f"k = {k}, {kind}, warm"] = f"{warm:.1f} ms"
    rows |= whole_searches(everything)
    for name, value in rows.items():
        print(f"{name:<42} {value}")
    machine = {"python": platform.python_version(), "cores": psutil.cpu_count()}
    arguments.out.write_text(json.dumps({"machine": machine, **rows}, indent=2) + "\n")


def measure(
    classifier: LocalClassifier,
    encoder: MiniLMEncoder,
    pairs: list[LabelledPair],
    kind: str,
    k: int,
    folder: Path,
) -> tuple[float, float]:
    """Returns the median milliseconds of a judgement, cold and warm."""
    cold, warm = [], []
    for repeat in range(REPEATS):
        path = folder / f"{k}-{kind}-{repeat}.db"
        Memory(path).close()
        verdicts = SQLiteVerdicts(str(path))
        oracle = PairwiseOracle(
            classifier,
            threshold=classifier.threshold,
            gate=TopicGate(CachedEncoder(encoder)),
            cache=verdicts,
        )
        candidates = candidate_set(pairs, kind, k, seed=repeat)
        cold.append(timed(oracle, candidates))
        warm.append(timed(oracle, candidates))
        verdicts.close()
    return statistics.median(cold), statistics.median(warm)


def whole_searches(everything: list[LabelledPair]) -> dict[str, str]:
    """Hides updates in memories of other lines, and counts what a search removes and keeps."""
    rng = random.Random(1)
    updates = [p for p in everything if p.category.startswith("explicit") and p.question]
    others = [p.older for p in everything if not p.category.startswith("behavioural")]
    both = removed = wrong = rest = 0
    conflict_ms = []
    for _ in range(SEARCHES):
        update = rng.choice(updates)
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


def candidate_set(pairs: list[LabelledPair], kind: str, k: int, *, seed: int) -> CandidateSet:
    rng = random.Random(seed)
    topic = rng.choice(pairs)
    share = k if kind == "one topic" else max(2, k // 5)
    texts = [f"{topic.older} ({n})" for n in range(share - 1)] + [topic.newer]
    texts += [rng.choice(pairs).older for _ in range(k - share)]
    items = [
        Candidate(
            chunk=Chunk(id=str(n), text=text, at=START + timedelta(days=n), seq=n + 1),
            relevance=0.5,
            origin="mtm",
        )
        for n, text in enumerate(texts)
    ]
    return CandidateSet(query=topic.question or topic.older, items=tuple(items))


def timed(oracle: PairwiseOracle, candidates: CandidateSet) -> float:
    started = time.perf_counter()
    oracle.judge(candidates)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
