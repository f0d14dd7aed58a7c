"""Sorts hits: most similar first, the newest first among equals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

EQUAL_WITHIN = 1e-6
"""Cosines that differ by less are equal: engines and matrix products round differently."""


def ranked(
    scores: Sequence[float] | np.ndarray[Any, Any], newness: Sequence[int] | np.ndarray[Any, Any]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the positions by descending score; newest first if scores are equal."""
    scores, newness = np.asarray(scores, dtype=np.float64), np.asarray(newness, dtype=np.int64)
    order = np.argsort(-scores, kind="stable")
    falls = scores[order][:-1] - scores[order][1:] > EQUAL_WITHIN
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.concatenate(([0], np.cumsum(falls)))[: len(order)]
    return np.asarray(np.lexsort((-newness, group)))
