"""The order of hits: most similar first, and among equals the newest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

SAME = 1e-6
"""Cosines as close as this are equal: engines and matrix products round differently."""


def ranked(
    scores: Sequence[float] | np.ndarray[Any, Any], newness: Sequence[int] | np.ndarray[Any, Any]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the positions by falling score; scores that only rounding parts, newest first."""
    scores, newness = np.asarray(scores, dtype=np.float64), np.asarray(newness, dtype=np.int64)
    order = np.argsort(-scores, kind="stable")
    falls = scores[order][:-1] - scores[order][1:] > SAME
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.concatenate(([0], np.cumsum(falls)))[: len(order)]
    return np.asarray(np.lexsort((-newness, group)))
