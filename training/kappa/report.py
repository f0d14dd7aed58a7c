"""Measures a scorer on what was held out, both tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from training.kappa.batches import Batch, Texts
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
)
from training.kappa.draw import (
    MAX_OPTIONS,
    OTHER_SLOT,
    SAME_SLOT,
    AnswerRow,
    PairRow,
    StanceRow,
    kind_of,
)
from training.kappa.metrics import auc, summarise

Logits = Callable[[Batch], torch.Tensor]
ROWS = 512


def pair_row(pair: Pair) -> PairRow:
    """Returns a pair as the model reads it: in alphabetical order, so the same in either order."""
    first, second = sorted((pair.older, pair.newer))
    return PairRow((pair.question, first, second), float(pair.conflict))


@torch.no_grad()
def score_pairs(logits: Logits, texts: Texts, pairs: Sequence[Pair], device: str) -> np.ndarray:
    """Returns, for each pair, the probability of a contradiction."""
    rows = [pair_row(p) for p in pairs]
    order = sorted(range(len(rows)), key=lambda n: sum(map(len, rows[n].texts)))
    out = np.zeros(len(rows))
    for start in range(0, len(rows), ROWS):
        part = order[start : start + ROWS]
        batch = texts.pairs([rows[n] for n in part]).to(device)
        out[part] = torch.sigmoid(logits(batch)).cpu().numpy()
    return out


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


@torch.no_grad()
def stance_figures(logits: Logits, texts: Texts, rows: list[StanceRow], device: str) -> Any:
    """Returns how often the right option is chosen, and how well on topic is told from off."""
    parts = [
        torch.softmax(logits(texts.stances(rows[s : s + ROWS]).to(device)), 1).cpu()
        for s in range(0, len(rows), ROWS)
    ]
    found = torch.cat(parts).numpy()
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


def measure(logits: Logits, texts: Texts, part: str, *, device: str) -> dict[str, Any]:
    """Returns the figures of every held-out set."""
    families = load_families()
    new, old = held_out(families, part), seen(families, part)
    sets = {
        "explicit, unseen families": [p for f in new for p in f.pairs],
        "explicit, seen families": [p for f in old for p in f.pairs],
        "contrasts": load_contrasts(part),
        "facts": fact_pairs(load_facts(part), seed=0),
        "behavioural, unseen families": behavioural_pairs(new, per_family=150, seed=1),
        "behavioural, seen families": behavioural_pairs(old, per_family=15, seed=2),
    }
    report: dict[str, Any] = {}
    for name, pairs in sets.items():
        if not pairs:
            continue
        scores = score_pairs(logits, texts, pairs, device)
        report[name] = summarise(pairs, scores)
    report["answers in contrasts"] = answer_figures(logits, texts, load_contrasts(part), device)
    return report | measure_stances(logits, texts, part, device=device)


@torch.no_grad()
def answer_figures(logits: Logits, texts: Texts, pairs: Sequence[Pair], device: str) -> Any:
    """Returns how well what answers a question is told from another slot or person."""
    asked = [p for p in pairs if p.question and kind_of(p) in SAME_SLOT | OTHER_SLOT]
    rows = [AnswerRow(p.question, p.newer, float(kind_of(p) in SAME_SLOT)) for p in asked]
    found = [
        logits(texts.answers(rows[start : start + ROWS]).to(device)).cpu()
        for start in range(0, len(rows), ROWS)
    ]
    labels = np.array([row.label > 0 for row in rows])
    return {"n": len(rows), "auc": round(auc(labels, torch.cat(found).numpy()), 4)}


def measure_stances(logits: Logits, texts: Texts, part: str, *, device: str) -> dict[str, Any]:
    """Returns the figures of the stances alone: a few seconds."""
    families = load_families()
    sets = {"unseen": held_out(families, part), "seen": seen(families, part)}
    return {
        f"stance, {name} families": stance_figures(logits, texts, stance_rows(chosen), device)
        for name, chosen in sets.items()
    }
