"""Runs a grid, resumably: every path of an instance gets the same frozen candidate set."""

from __future__ import annotations

import functools
import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gcmem import __version__
from gcmem.answer import prompt_of
from gcmem.bench.data.instances import Instance
from gcmem.bench.data.streams import Texts
from gcmem.bench.run.grid import Grid
from gcmem.bench.run.memories import BenchMemory, MakeOracle, set_hash
from gcmem.bench.run.outcomes import Condition, Outcome, Run, load_run, row_of
from gcmem.bench.run.product import product_defaults
from gcmem.bench.run.readers import MajorityReader
from gcmem.bench.run.scoring import measured, scored
from gcmem.calls import ScopedCache, one_call
from gcmem.defaults import make_resolver
from gcmem.errors import GCMemError
from gcmem.private_files import make_private_file, make_private_folder
from gcmem.protocols import Progress, Reader
from gcmem.resolve import (
    MultiFactor,
    multi_factor,
    plain_set,
    standard,
    time_decay,
    timestamp_rerank,
)
from gcmem.settings import Settings
from gcmem.stopwatch import Stopwatch
from gcmem.types import CandidateSet, PromptMode, Resolution

HALF_LIFE = timedelta(days=30)
FACTORS = {
    "recency+relevance": MultiFactor(recency=0.5, relevance=0.5, usage=0.0, stability=0.0),
    "recency+relevance+usage": MultiFactor(
        recency=1 / 3, relevance=1 / 3, usage=1 / 3, stability=0.0
    ),
    "recency+relevance+stability": MultiFactor(
        recency=1 / 3, relevance=1 / 3, usage=0.0, stability=1 / 3
    ),
    "full": MultiFactor(),
}
PACKAGES = ("numpy", "onnxruntime", "tokenizers", "scipy", "matplotlib", "openai")

Loader = Callable[[str], Sequence[Instance]]


def run_grid(
    grid: Grid,
    *,
    out: Path,
    load: Loader,
    texts: Texts,
    readers: Mapping[str, Reader | None],
    make_oracle: MakeOracle,
    jobs: int = 1,
    hashes: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Runs the missing conditions and returns the whole run; outcomes are saved per instance.

    A failed instance is recorded with its error, and the run continues.
    """
    make_private_folder(out)
    make_private_file(out / "results.jsonl")
    started = datetime.now(UTC)
    done = _done(out)
    work = [
        (instance, [c for c in conditions if (c, instance.id) not in done])
        for dataset in grid.datasets
        for conditions in [list(grid.conditions(dataset))]
        for instance in spread(load(dataset), grid.limit)
    ]
    total = sum(len(conditions) for _, conditions in work)
    finished = 0
    with (
        (out / "results.jsonl").open("a", encoding="utf-8") as file,
        ThreadPoolExecutor(jobs) as pool,
    ):
        play = functools.partial(_outcomes, texts=texts, readers=readers, make_oracle=make_oracle)
        for outcomes in pool.map(play, work):
            for outcome in outcomes:
                file.write(row_of(outcome) + "\n")
            file.flush()
            finished += len(outcomes)
            if progress is not None and outcomes:
                progress(finished, total)
    about = _about(grid, started, hashes or {}, texts.encoder.id)
    (out / "run.json").write_text(json.dumps(about, indent=1, default=str) + "\n", "utf-8")
    return load_run(out)


def spread(instances: Sequence[Instance], limit: int | None) -> Sequence[Instance]:
    """Returns at most `limit` instances, evenly spread."""
    if limit is None or limit >= len(instances):
        return instances
    return [instances[n * len(instances) // limit] for n in range(limit)]


def _done(out: Path) -> set[tuple[Condition, str]]:
    """Returns the (condition, instance id) pairs on disk; ends a line that a killed run cut off."""
    results = out / "results.jsonl"
    if not results.exists():
        return set()
    with results.open("rb+") as file:
        written = file.read()
        if written and not written.endswith(b"\n"):
            file.write(b"\n")
    return {(outcome.condition, outcome.instance) for outcome in load_run(out).outcomes}


def _outcomes(
    work: tuple[Instance, list[Condition]],
    *,
    texts: Texts,
    readers: Mapping[str, Reader | None],
    make_oracle: MakeOracle,
) -> list[Outcome]:
    instance, conditions = work
    if not conditions:
        return []
    try:
        memory = BenchMemory.of(instance, texts)
    except GCMemError as error:
        return [_failed(_empty(condition, instance), error) for condition in conditions]
    try:
        player = _Player(memory, readers, make_oracle)
        return [player.play(condition) for condition in conditions]
    finally:
        memory.close()


def _empty(condition: Condition, instance: Instance) -> Outcome:
    return Outcome(
        condition=condition,
        instance=instance.id,
        family=instance.family,
        severity=instance.severity,
        subset=instance.subset,
        ratio=instance.metadata.get("ratio"),
    )


def _failed(outcome: Outcome, error: GCMemError) -> Outcome:
    return replace(outcome, error=f"{type(error).__name__}: {error}")


class _Player:
    """Runs the conditions of one instance; candidate sets and resolutions are cached."""

    def __init__(
        self,
        memory: BenchMemory,
        readers: Mapping[str, Reader | None],
        make_oracle: MakeOracle,
    ) -> None:
        self._memory = memory
        self._instance = memory.instance
        self._readers = readers
        self._make_oracle = make_oracle
        self._resolutions: dict[tuple[str, str], tuple[Resolution, float, float]] = {}
        self._cache = ScopedCache()

    def play(self, condition: Condition) -> Outcome:
        """Returns the outcome of one condition."""
        empty = _empty(condition, self._instance)
        try:
            with one_call(self._cache):
                return self._played(condition, empty)
        except GCMemError as error:
            return _failed(empty, error)

    def _played(self, condition: Condition, empty: Outcome) -> Outcome:
        instance = self._instance
        started = time.perf_counter()
        candidates = self._memory.candidates(condition.setting, condition.retrieval, condition.k)
        retrieve_ms = (time.perf_counter() - started) * 1000
        resolution, conflict_ms, dominance_ms = self._resolved(condition, candidates)
        mode: PromptMode = condition.mode  # type: ignore[assignment]
        prompt = prompt_of(candidates, resolution, k=condition.k or None, mode=mode)
        reader = self._readers[condition.reader] or MajorityReader(
            self._memory.states, instance.answer
        )
        started = time.perf_counter()
        reading = reader.read([prompt])[0]
        timings = {
            "retrieve": retrieve_ms,
            "conflict": conflict_ms,
            "dominance": dominance_ms,
            "read": (time.perf_counter() - started) * 1000,
        }
        return replace(
            scored(empty, instance, reading),
            **measured(
                instance,
                candidates,
                resolution,
                turn_of=self._memory.turn_of,
                ranks_only=condition.path != "gcmem",
            ),
            candidates=len(candidates),
            candidate_hash=set_hash(candidates),
            timings_ms=timings,
            tokens=reading.tokens,
            calls=int(condition.reader.startswith("llm")),
        )

    def _resolved(
        self, condition: Condition, candidates: CandidateSet
    ) -> tuple[Resolution, float, float]:
        if condition.path == "gcmem":
            return self._resolved_by(condition.oracle, candidates)
        rank = {
            "standard": standard,
            "timestamp": timestamp_rerank,
            "time-decay": time_decay(half_life=HALF_LIFE),
        }.get(condition.path)
        if rank is None:
            weights = FACTORS[condition.path.removeprefix("multi-factor:")]
            rank = multi_factor(weights, usage=self._memory.usage(condition.k or 10))
        if condition.path == "timestamp":
            candidates = plain_set(candidates, k=condition.k, strategy=condition.retrieval)
        started = time.perf_counter()
        resolution = rank(candidates, ())
        return resolution, 0.0, (time.perf_counter() - started) * 1000

    def _resolved_by(
        self, oracle: str, candidates: CandidateSet
    ) -> tuple[Resolution, float, float]:
        key = (oracle, set_hash(candidates))
        if key not in self._resolutions:
            made = self._memory.oracle(oracle, self._make_oracle)
            # Unlike in the product, an oracle that was never measured removes: this measures it.
            resolver = make_resolver(made, require_qualified=False)
            watch = Stopwatch()
            resolution = resolver.resolve(candidates, watch=watch)
            spent = watch.spent_ms
            self._resolutions[key] = resolution, spent["conflict_ms"], spent["dominance_ms"]
        return self._resolutions[key]


def _about(
    grid: Grid, started: datetime, hashes: Mapping[str, str], encoder: str
) -> dict[str, Any]:
    return {
        "grid": asdict(grid),
        "product_defaults": product_defaults(),
        # As in the product, except for the strategy: that is the grid's retrieval.
        "memory_settings": {k: v for k, v in asdict(Settings()).items() if k != "strategy"},
        "gcmem": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": dict(_versions()),
        "encoder": encoder,
        "dataset_sha256": dict(hashes),
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _versions() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _commit() -> str | None:
    """Returns the git commit that the code runs from, or None outside a checkout."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
