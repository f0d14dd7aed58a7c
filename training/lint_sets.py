"""Checks the contrasts, facts, remarks and notebooks of the training corpus."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from training.corpus_text import normal
from training.kappa.tasks import MAX_OPTIONS
from training.lint_report import Report

CONTRASTS = frozenset(
    "conflict other_slot restated temporary other_person accumulating plan past hypothetical "
    "reported question smalltalk".split()
)
FACT_KEYS = frozenset({"subject", "first", "again", "second", "question"})


def check_contrasts(path: Path) -> Report:
    """Checks one older line a row, against newer ones of known kinds, none of them twice."""
    report = Report()
    kinds: Counter[str] = Counter()
    olders: Counter[str] = Counter()
    for where, row in _rows(path):
        faults = list(_contrast_faults(row))
        report.errors += [f"schema: {where}: {fault}" for fault in faults]
        if not faults:
            olders[normal(row["older"])] += 1
            kinds.update(newer["kind"] for newer in row["newer"])
    report.errors += [f"duplicate: contrast {text!r}" for text, n in olders.items() if n > 1]
    report.stats[path.stem] = {"older lines": olders.total(), **dict(kinds.most_common())}
    return report


def _contrast_faults(row: Mapping[str, Any]) -> Iterator[str]:
    if row.keys() != {"writer", "older", "question", "newer"}:
        yield "a contrast needs writer, older, question and newer"
        return
    texts = [normal(row["older"]), *(normal(newer["text"]) for newer in row["newer"])]
    if not all(texts) or len(set(texts)) < len(texts):
        yield "a text is empty or stands there twice"
    kinds = {newer["kind"] for newer in row["newer"]}
    if unknown := kinds - CONTRASTS:
        yield f"unknown kinds {sorted(unknown)}"
    if "conflict" not in kinds or len(kinds) < 2:
        yield "it needs a conflict and something that is none"


def check_facts(path: Path) -> Report:
    """Checks the rows of every relation: all fields, and three different statements."""
    report = Report()
    counts: Counter[str] = Counter()
    for where, row in _rows(path):
        if row.keys() != {"writer", "relation", "single", "facts"}:
            report.errors.append(f"schema: {where}: needs writer, relation, single and facts")
            continue
        counts["relations with one value" if row["single"] else "relations with several"] += 1
        counts["facts"] += len(row["facts"])
        for fact in row["facts"]:
            texts = [normal(fact.get(key, "")) for key in ("first", "again", "second")]
            if fact.keys() != FACT_KEYS or not all(texts) or len(set(texts)) < len(texts):
                report.errors.append(f"schema: {where}: {fact.get('subject')!r} is not sound")
    report.stats["facts"] = dict(counts)
    return report


def check_remarks(path: Path) -> Report:
    """Checks the short lines of every topic: some for each, and none twice."""
    report = Report()
    lines: Counter[str] = Counter()
    topics: Counter[str] = Counter()
    for where, row in _rows(path):
        keys = {"writer", "topic", "lines"}
        if row.keys() != keys or not row["lines"] or not all(map(normal, row["lines"])):
            report.errors.append(f"schema: {where}: needs writer, topic and lines")
            continue
        topics[normal(row["topic"])] += 1
        lines.update(map(normal, row["lines"]))
    report.errors += [f"duplicate: topic {name!r}" for name, n in topics.items() if n > 1]
    report.errors += [f"duplicate: remark {text!r}" for text, n in lines.items() if n > 1]
    report.stats["remarks"] = {"topics": topics.total(), "lines": lines.total()}
    return report


def check_notebooks(path: Path) -> Report:
    """Checks that every slot has a question and values to tell apart, and no line stands twice.

    Not even in two notebooks: they might fall into two parts.
    """
    report = Report()
    counts: Counter[str] = Counter()
    subjects: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    for where, row in _rows(path):
        faults = list(_notebook_faults(row))
        report.errors += [f"schema: {where}: {fault}" for fault in faults]
        if not faults:
            subjects[normal(row["subject"])] += 1
            texts.update(normal(line["text"]) for line in row["lines"])
            counts["slots"] += len(row["questions"])
            counts["lines"] += len(row["lines"])
            counts["lines that say nothing of a slot"] += sum(
                line["slot"] is None for line in row["lines"]
            )
    report.errors += [f"duplicate: notebook {name!r}" for name, n in subjects.items() if n > 1]
    report.errors += [f"duplicate: noted line {text!r}" for text, n in texts.items() if n > 1]
    report.stats["notebooks"] = {"notebooks": subjects.total(), **counts}
    return report


def _notebook_faults(row: Mapping[str, Any]) -> Iterator[str]:
    if row.keys() != {"writer", "subject", "questions", "lines"}:
        yield "a notebook needs writer, subject, questions and lines"
        return
    values: dict[str, set[str]] = defaultdict(set)
    for line in row["lines"]:
        if line.keys() != {"slot", "value", "text"}:
            yield "a line needs slot, value and text"
            return
        if (line["slot"] is None) != (line["value"] is None):
            yield f"slot and value go together: {line['text']!r}"
        elif line["slot"] is not None:
            values[line["slot"]].add(line["value"])
    texts = [normal(line["text"]) for line in row["lines"]]
    if not all(texts) or len(set(texts)) < len(texts):
        yield "a text is empty or stands there twice"
    if values.keys() != row["questions"].keys() or not all(map(normal, row["questions"].values())):
        yield "every slot needs lines and a question"
    for slot, found in values.items():
        if not 2 <= len({normal(value) for value in found}) == len(found) <= MAX_OPTIONS:
            yield f"slot {slot!r} needs two to {MAX_OPTIONS} values, each written in one way"


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    yield from ((f"{path.name}:{n}", json.loads(line)) for n, line in enumerate(lines, 1))
