"""Qualification: is an oracle good enough to remove chunks?

κ's recall decides whether the method works: one that sees under half of the contradictions leaves
the stale majority in place, and one that is often wrong removes what is true.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from gcmem.errors import InvalidInputError, StoreUnavailableError, UnqualifiedOracleWarning
from gcmem.ingest import parse_time
from gcmem.private_files import make_private_folder, write_private
from gcmem.protocols import ConflictOracle, Progress
from gcmem.resolve import temporal_dominance
from gcmem.types import Candidate, CandidateSet, Chunk, FrozenDict

Verdict = Literal["optimal", "marginal", "unfit"]
T = TypeVar("T")

SHIPPED_PAIRS = Path(__file__).parent.parent / "models" / "kappa" / "test_pairs.jsonl"
SHIPPED_RECORD = SHIPPED_PAIRS.with_name("qualification.json")
RECORD = Path("~/.gcmem/qualified.json")
LEAST = 0.5
"""The paper's rule: an oracle with a recall of a half or less must not remove anything."""
GOOD = 0.9
ENOUGH = 50
"""Conflicts, and other pairs, that it takes for a verdict to be recorded."""
BINS = 10
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """Two texts, the question they are judged by, and whether they conflict."""

    older: str
    newer: str
    conflict: bool
    question: str = ""
    category: str = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """A whole memory with its contradictions, and what must be kept."""

    candidates: CandidateSet
    conflicts: tuple[tuple[str, str], ...]
    must_keep: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualification:
    """How well an oracle does, and what it may therefore do.

    `shadowed` is the share of contradicted chunks that went, `kept` the share of those that must
    stay and did; both only where whole sets were judged.
    """

    oracle: str
    precision: float
    recall: float
    f1: float
    verdict: Verdict
    judged: int
    latency_ms_per_pair: float
    calibration_error: float
    by_category: Mapping[str, Mapping[str, float]] = field(default_factory=FrozenDict, hash=False)
    shadowed: float | None = None
    kept: float | None = None
    enough: bool = False
    """Whether there was enough to judge by for the verdict to be recorded."""


def qualify_pairs(
    oracle: ConflictOracle, pairs: Sequence[LabelledPair], *, progress: Progress | None = None
) -> Qualification:
    """Judges labelled pairs, one candidate set each."""
    if not any(pair.conflict for pair in pairs):
        raise InvalidInputError("no conflicting pair among them: recall can't be measured")
    said: list[bool] = []
    scores: list[float] = []
    started = time.perf_counter()
    for number, pair in enumerate(pairs):
        conflicts = oracle.judge(_set_of(pair))
        said.append(bool(conflicts))
        scores.append(max((conflict.score for conflict in conflicts), default=0.0))
        if progress is not None:
            progress(number + 1, len(pairs))
    spent_ms = (time.perf_counter() - started) * 1000
    truth = [pair.conflict for pair in pairs]
    precision, recall, f1 = _figures(said, truth)
    return Qualification(
        oracle=oracle.id,
        precision=precision,
        recall=recall,
        f1=f1,
        verdict=verdict(precision=precision, recall=recall),
        judged=len(pairs),
        latency_ms_per_pair=round(spent_ms / len(pairs), 3),
        calibration_error=_calibration_error(scores, truth),
        by_category=_by_category(pairs, said),
        enough=min(sum(truth), len(truth) - sum(truth)) >= ENOUGH,
    )


def qualify_sets(
    oracle: ConflictOracle, sets: Sequence[LabelledSet], *, progress: Progress | None = None
) -> Qualification:
    """Judges whole sets: what went that should have, and what stayed that must.

    One witness is enough to remove a chunk, so the figures are about the chunks that go, not
    about pairs: recall is the share of the contradicted ones that went, precision the share of
    those that went which are contradicted.
    """
    if not any(labelled.conflicts for labelled in sets):
        raise InvalidInputError("no conflict in any instance: recall can't be measured")
    said: list[bool] = []
    truth: list[bool] = []
    scores: list[float] = []
    must, stayed, pairs = 0, 0, 0
    started = time.perf_counter()
    for number, labelled in enumerate(sets):
        resolution = temporal_dominance(labelled.candidates, oracle.judge(labelled.candidates))
        gone = {shadow.candidate.chunk.id: shadow.conflict.score for shadow in resolution.shadows}
        stale = {older for older, _ in labelled.conflicts}
        ids = [item.chunk.id for item in labelled.candidates]
        said += [i in gone for i in ids]
        truth += [i in stale for i in ids]
        scores += [gone.get(i, 0.0) for i in ids]
        must += len(labelled.must_keep)
        stayed += len(set(labelled.must_keep) - gone.keys())
        pairs += len(ids) * (len(ids) - 1) // 2
        if progress is not None:
            progress(number + 1, len(sets))
    spent_ms = (time.perf_counter() - started) * 1000
    precision, recall, f1 = _figures(said, truth)
    return Qualification(
        oracle=oracle.id,
        precision=precision,
        recall=recall,
        f1=f1,
        verdict=verdict(precision=precision, recall=recall),
        judged=len(sets),
        latency_ms_per_pair=round(spent_ms / max(1, pairs), 3),
        calibration_error=_calibration_error(scores, truth),
        shadowed=recall,
        kept=round(stayed / must, 4) if must else 1.0,
        enough=min(sum(truth), must) >= ENOUGH,
    )


def verdict(*, precision: float, recall: float) -> Verdict:
    """Returns the class: unfit at a half or less, optimal from nine tenths, marginal between."""
    if recall <= LEAST or precision <= LEAST:
        return "unfit"
    return "optimal" if recall >= GOOD and precision >= GOOD else "marginal"


def load_pairs(path: Path) -> list[LabelledPair]:
    """Reads JSONL: question, older, newer, conflict, category."""
    return _read(path, _pair)


def load_sets(path: Path) -> list[LabelledSet]:
    """Reads JSONL: question, options, turns [{id, at, speaker, text}], conflicts, must_keep."""
    return _read(path, _labelled_set)


def _read(path: Path, parse: Callable[[Any], T]) -> list[T]:
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"can't read {path}: {error}") from None
    parsed = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not a JSON object")
            parsed.append(parse(row))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{error} is missing" if type(error) is KeyError else str(error)
            raise InvalidInputError(f"{path}, line {number}: {reason}") from None
    return parsed


def _pair(row: Any) -> LabelledPair:
    if not isinstance(row["conflict"], bool):
        raise ValueError("conflict must be true or false")
    return LabelledPair(
        older=_text(row["older"], "older"),
        newer=_text(row["newer"], "newer"),
        conflict=row["conflict"],
        question=_text(row.get("question") or " ", "question").strip(),
        category=_text(row.get("category") or "all", "category"),
    )


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a text, not {value!r}")
    return value


def _labelled_set(row: Any) -> LabelledSet:
    items = tuple(
        Candidate(
            chunk=Chunk(
                id=str(turn["id"]),
                text=_text(turn["text"], "text"),
                at=parse_time(turn["at"]),
                seq=number,
                speaker=str(turn.get("speaker") or "user"),
            ),
            relevance=1.0,
            origin="mtm",
        )
        for number, turn in enumerate(row["turns"], 1)
    )
    conflicts = tuple((str(a), str(b)) for a, b in row["conflicts"])
    must_keep = tuple(dict.fromkeys(map(str, row.get("must_keep") or ())))
    unknown = {*must_keep, *(i for pair in conflicts for i in pair)} - {i.chunk.id for i in items}
    if unknown:
        raise ValueError(f"no turn has the id {sorted(unknown)[0]!r}")
    return LabelledSet(
        candidates=CandidateSet(
            query=_text(row["question"] or " ", "question").strip(),
            options=tuple(row.get("options") or ()),
            items=items,
        ),
        conflicts=conflicts,
        must_keep=must_keep,
    )


def _set_of(pair: LabelledPair) -> CandidateSet:
    texts = (pair.older, pair.newer)
    return CandidateSet(
        query=pair.question,
        items=tuple(
            Candidate(
                chunk=Chunk(id=str(n), text=text, at=START + timedelta(days=n), seq=n),
                relevance=1.0,
                origin="mtm",
            )
            for n, text in enumerate(texts, 1)
        ),
    )


def _figures(said: Sequence[bool], truth: Sequence[bool]) -> tuple[float, float, float]:
    hits = sum(s and t for s, t in zip(said, truth, strict=True))
    precision = hits / sum(said) if any(said) else 0.0
    recall = hits / sum(truth) if any(truth) else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return round(precision, 4), round(recall, 4), round(f1, 4)


def _by_category(
    pairs: Sequence[LabelledPair], said: Sequence[bool]
) -> dict[str, dict[str, float]]:
    """Recall of the conflicts and false-positive rate of the rest, category by category."""
    report: dict[str, dict[str, float]] = {}
    for name in sorted({pair.category for pair in pairs}):
        rows = [(p.conflict, s) for p, s in zip(pairs, said, strict=True) if p.category == name]
        conflicts = [s for conflict, s in rows if conflict]
        others = [s for conflict, s in rows if not conflict]
        figures: dict[str, float] = {"n": len(rows)}
        if conflicts:
            figures["recall"] = round(sum(conflicts) / len(conflicts), 4)
        if others:
            figures["false_positive_rate"] = round(sum(others) / len(others), 4)
        report[name] = figures
    return report


def _calibration_error(scores: Sequence[float], truth: Sequence[bool]) -> float:
    """Returns how far scores are from the share of true conflicts, on average over ten bins."""
    total = 0.0
    for number in range(BINS):
        rows = [
            (score, label)
            for score, label in zip(scores, truth, strict=True)
            if min(int(score * BINS), BINS - 1) == number
        ]
        if rows:
            said = sum(score for score, _ in rows) / len(rows)
            true = sum(label for _, label in rows) / len(rows)
            total += len(rows) * abs(said - true)
    return round(total / max(1, len(scores)), 4)


def remember(found: Qualification, *, record: Path = RECORD) -> None:
    """Keeps the verdict under the oracle's id and version, for memories to look up."""
    try:
        path = record.expanduser()
        make_private_folder(path.parent)
        known = {**_load_record(path), found.oracle: found.verdict}
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(temporary, json.dumps(known, indent=2) + "\n")
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        raise StoreUnavailableError(f"the verdict can't be kept in {record}: {error}") from error


def recall_verdict(oracle_id: str, *, record: Path = RECORD) -> Verdict | None:
    """Returns the verdict on an oracle; None where it was never qualified."""
    # What came with the release was measured on more than a user's file is likely to hold.
    return {**_load_record(record), **_load_record(SHIPPED_RECORD)}.get(oracle_id)


def may_remove(oracle: ConflictOracle) -> bool:
    """Tells whether an oracle may remove chunks, and warns once where it may only annotate."""
    known = recall_verdict(oracle.id)
    if known in ("optimal", "marginal"):
        return True
    why = "was found unfit" if known == "unfit" else "was never qualified"
    warnings.warn(
        f"oracle {oracle.id!r} {why}, so it only annotates: what it would remove stays in the "
        "results. Measure it with gcmem.judge.qualification or `gcmem qualify`, or insist with "
        "require_qualified=False, on the command line --unqualified",
        UnqualifiedOracleWarning,
        stacklevel=3,
    )
    return False


def _load_record(path: Path) -> dict[str, Verdict]:
    try:
        found = json.loads(path.expanduser().read_text("utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {oracle: verdict for oracle, verdict in known if verdict in get_args(Verdict)}
