"""Measures the shipped κ: `make bench-oracle`. Prints a table and keeps it in benchmarks/.

Candidate sets are drawn from the pairs that `gcmem qualify` judges. "one topic": all chunks are
about one thing, the worst case; "mixed": a few are, as in a search. Cold: nothing is cached, the
gate's vectors included; warm: the verdicts are known.
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

from gcmem import Candidate, CandidateSet, Chunk, Memory
from gcmem.conflict import LocalClassifier, PairwiseOracle, TopicGate
from gcmem.encode import CachedEncoder, MiniLMEncoder
from gcmem.qualify import SHIPPED_PAIRS, LabelledPair, load_pairs
from gcmem.store import SQLiteVerdicts

START = datetime(2026, 1, 1, tzinfo=UTC)
REPEATS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "oracle.json")
    arguments = parser.parse_args()
    pairs = [p for p in load_pairs(SHIPPED_PAIRS) if p.category.startswith("explicit")]
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
    for name, value in rows.items():
        print(f"{name:<26} {value}")
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
        warm.append(min(timed(oracle, candidates) for _ in range(3)))
        verdicts.close()
    return statistics.median(cold), statistics.median(warm)


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
