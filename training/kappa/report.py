"""Measures a scorer on what was held out, all tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from training.kappa.data import (
    Family,
    Pair,
    behavioural_pairs,
    fact_pairs,
    held_out,
    load_contrasts,
    load_facts,
    load_families,
    seen,
    unrelated_updates,
)
from training.kappa.draw import OTHER_SLOT, SAME_SLOT, kind_of
from training.kappa.metrics import auc, summarise
from training.kappa.notebooks import Notebook, load_notebooks, notebook_pairs
from training.kappa.rows import Row
from training.kappa.tasks import MAX_OPTIONS, AnswerRow, PairRow, StanceRow

Judge = Callable[[Sequence[Row]], np.ndarray]
"""Returns a row of logits for each: a pair's or answer's first; a stance's options, then none."""


def pair_row(pair: Pair) -> PairRow:
    """Returns a pair as the model reads it: in alphabetical order, so the same in either order."""
    first, second = sorted((pair.older, pair.newer))
    return PairRow((pair.question, first, second), float(pair.conflict))


def score_pairs(judge: Judge, pairs: Sequence[Pair]) -> np.ndarray:
    """Returns, for each pair, the probability of a contradiction."""
    return 1 / (1 + np.exp(-judge([pair_row(p) for p in pairs])[:, 0]))


def stance_rows(families: Sequence[Family]) -> list[StanceRow]:
    """Returns every behaviour against the states of its family, and the neutral lines."""
    rows = []
    for family in families:
        options = tuple(sorted(family.states))
        for number, option in enumerate(options):
            rows += [
                StanceRow(family.questions[n % len(family.questions)], options, s, number)
                for n, s in enumerate(family.states[option])
            ]
        rows += [StanceRow(family.questions[0], options, s, None) for s in family.neutral]
    return rows


def noted_stances(notebooks: Sequence[Notebook]) -> list[StanceRow]:
    """Returns every line of a notebook against the values of its slots, its own or not."""
    rows = []
    for notebook in notebooks:
        for slot, question in notebook.questions.items():
            options = tuple(sorted(notebook.values(slot)))
            rows += [
                StanceRow(
                    question,
                    options,
                    line.text,
                    options.index(str(line.value)) if line.slot == slot else None,
                )
                for line in notebook.lines
            ]
    return rows


def stance_figures(judge: Judge, rows: list[StanceRow]) -> Any:
    """Returns how often the right option is chosen, and how well on topic is told from off."""
    logits = judge(rows)
    found = np.exp(logits - logits.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    on = np.array([r.label is not None for r in rows])
    right = [
        int(p[:MAX_OPTIONS].argmax()) == r.label
        for p, r in zip(found, rows, strict=True)
        if r.label is not None
    ]
    return {
        "accuracy": round(float(np.mean(right)), 4),
        "n": len(right),
        "on_topic_auc": round(auc(on, 1 - found[:, MAX_OPTIONS]), 4),
    }


def measure(judge: Judge, part: str) -> dict[str, Any]:
    """Returns the figures of every held-out set."""
    families = load_families()
    new, old = held_out(families, part), seen(families, part)
    contrasts = load_contrasts(part)
    sets = {
        "explicit, unseen families": [p for f in new for p in f.pairs],
        "explicit, seen families": [p for f in old for p in f.pairs],
        "contrasts": [p for p in contrasts if p.category.startswith("contrast")],
        "plain contrasts": [p for p in contrasts if p.category.startswith("plain")],
        "shown contrasts": [p for p in contrasts if p.category.startswith("shown")],
        "facts": fact_pairs(load_facts(part), seed=0),
        "notebooks": notebook_pairs(load_notebooks(part), seed=0),
        "unrelated updates": unrelated_updates([*new, *old], count=1000, seed=5),
        "behavioural, unseen families": behavioural_pairs(new, per_family=6, seed=1),
        "behavioural, seen families": behavioural_pairs(old, per_family=3, seed=2),
    }
    report: dict[str, Any] = {}
    for name, pairs in sets.items():
        if not pairs:
            continue
        scores = score_pairs(judge, pairs)
        report[name] = summarise(pairs, scores)
    report["answers in contrasts"] = answer_figures(judge, contrasts)
    for name, chosen in (("unseen", new), ("seen", old)):
        report[f"stance, {name} families"] = stance_figures(judge, stance_rows(chosen))
    report["stance, notebooks"] = stance_figures(judge, noted_stances(load_notebooks(part)))
    return report


def answer_figures(judge: Judge, pairs: Sequence[Pair]) -> Any:
    """Returns how well what answers a question is told from another slot or person."""
    asked = [p for p in pairs if p.question and kind_of(p) in SAME_SLOT | OTHER_SLOT]
    rows = [AnswerRow(p.question, p.newer, float(kind_of(p) in SAME_SLOT)) for p in asked]
    labels = np.array([row.label > 0 for row in rows])
    return {"n": len(rows), "auc": round(auc(labels, judge(rows)[:, 0]), 4)}


def brief(judge: Judge, part: str) -> dict[str, Any]:
    """Returns a few figures that tell how a run is going, in seconds."""
    families = load_families()
    found = {}
    for name, chosen in (("unseen", held_out(families, part)), ("seen", seen(families, part))):
        pairs = [p for f in chosen for p in f.pairs]
        figures = summarise(pairs, score_pairs(judge, pairs))
        found[name] = figures["recall_at_precision_95"]
        found[f"stance, {name}"] = stance_figures(judge, stance_rows(chosen))["accuracy"]
    return found
