"""Selects the frontier of time and similarity from scores, newest first."""

from __future__ import annotations

from typing import Any

import numpy as np

from gcmem.protocols import Vectors

ROUNDING = 1e-5
"""Scores closer than this count as equal: engines and matrix products round differently."""


def frontier_positions(scores: Vectors, frontier: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the positions of the frontier in `scores`, which are ordered newest first.

    A chunk is on the frontier if fewer than `frontier` newer chunks are at least as similar.
    """
    # Each layer holds the running maxima of what is left. A score in none of the layers has at
    # least `frontier` newer scores that are as high, so counting within the layers is enough.
    remaining = scores.copy()
    layers = []
    for _ in range(min(frontier, len(scores))):
        highest = np.maximum.accumulate(remaining)
        is_record = np.empty(len(remaining), dtype=bool)
        is_record[0] = remaining[0] > -np.inf
        np.greater(remaining[1:], highest[:-1] + np.float32(ROUNDING), out=is_record[1:])
        layer = np.nonzero(is_record)[0]
        layers.append(layer)
        remaining[layer] = -np.inf
    positions = np.sort(np.concatenate(layers))
    candidates = scores[positions]
    at_least_as_similar = candidates[None, :] > candidates[:, None] - ROUNDING
    newer_count = np.tril(at_least_as_similar, -1).sum(axis=1)
    return np.asarray(positions[newer_count < frontier])
