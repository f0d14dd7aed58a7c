"""Precision, recall, F1 and areas under the curve, whole and by category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from training.kappa.data import Pair


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Returns the chance that a conflict scores above a non-conflict, ties counted half."""
    positive, negative = scores[labels], scores[~labels]
    if not len(positive) or not len(negative):
        return float("nan")
    order = np.argsort(np.concatenate([positive, negative]), kind="mergesort")
    joined = np.concatenate([positive, negative])[order]
    ranks = np.empty(len(joined))
    _, first, counts = np.unique(joined, return_index=True, return_counts=True)
    for start, count in zip(first, counts, strict=True):
        ranks[start : start + count] = start + (count + 1) / 2
    own = ranks[np.argsort(order, kind="mergesort")][: len(positive)]
    return float(
        (own.sum() - len(positive) * (len(positive) + 1) / 2) / len(positive) / len(negative)
    )


def at_threshold(labels: np.ndarray, scores: np.ndarray, threshold: float) -> dict[str, float]:
    """Returns precision, recall and F1 at a threshold."""
    said = scores >= threshold
    hits = float((said & labels).sum())
    precision = hits / max(1.0, float(said.sum()))
    recall = hits / max(1.0, float(labels.sum()))
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(1e-9, precision + recall),
    }


def recall_at_precision(
    labels: np.ndarray, scores: np.ndarray, least: float
) -> tuple[float, float]:
    """Returns the best recall at which precision is at least `least`, and its threshold."""
    order = np.argsort(-scores)
    hits = np.cumsum(labels[order])
    precision = hits / np.arange(1, len(hits) + 1)
    good = np.nonzero(precision >= least)[0]
    if not len(good):
        return 0.0, 1.0
    return float(hits[good[-1]] / labels.sum()), float(scores[order[good[-1]]])


def best_f1(labels: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Returns the best F1 over all thresholds, and its threshold."""
    order = np.argsort(-scores)
    hits = np.cumsum(labels[order])
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + labels.sum())
    return float(f1.max()), float(scores[order[int(f1.argmax())]])


def summarise(pairs: Sequence[Pair], scores: np.ndarray) -> dict[str, Any]:
    """Returns the figures of one evaluation set."""
    labels = np.array([p.conflict for p in pairs])
    by_category: dict[str, list[int]] = defaultdict(list)
    for n, pair in enumerate(pairs):
        by_category[pair.category].append(n)
    f1, threshold = best_f1(labels, scores)
    recall95, _ = recall_at_precision(labels, scores, 0.95)
    positives = scores[labels]
    return {
        "n": len(pairs),
        "auc": round(auc(labels, scores), 4),
        "best_f1": round(f1, 4),
        "best_threshold": round(threshold, 3),
        "at_0.5": {k: round(v, 3) for k, v in at_threshold(labels, scores, 0.5).items()},
        "recall_at_precision_95": round(recall95, 4),
        "by_category": {
            name: {
                "n": len(rows),
                "said_conflict_at_0.5": round(float((scores[rows] >= 0.5).mean()), 3),
                **(
                    {}
                    if labels[rows].any()
                    else {"auc_against": round(_against(positives, scores[rows]), 3)}
                ),
            }
            for name, rows in sorted(by_category.items())
        },
    }


def _against(positives: np.ndarray, negatives: np.ndarray) -> float:
    joined = np.concatenate([positives, negatives])
    return auc(np.arange(len(joined)) < len(positives), joined)
