"""The frontier of time and similarity, selected from scores in the order of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gcmem.protocols import Vectors

ROUNDING = 1e-5
"""Scores closer than this count as equal: engines and matrix products round differently."""


def unmatched(scores: Vectors, depth: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the positions, in order, of scores that fewer than `depth` earlier ones match.

    Whatever matches a score lies in an earlier layer of running maxima, so the first `depth`
    layers hold all that is looked for and all that is needed to count.
    """
    left = scores.copy()
    layers = []
    for _ in range(min(depth, len(scores))):
        highest = np.maximum.accumulate(left)
        is_record = np.empty(len(left), dtype=bool)
        is_record[0] = left[0] > -np.inf
        np.greater(left[1:], highest[:-1] + np.float32(ROUNDING), out=is_record[1:])
        layer = np.nonzero(is_record)[0]
        layers.append(layer)
        left[layer] = -np.inf
    found = np.sort(np.concatenate(layers))
    own = scores[found]
    matched = np.tril(own[None, :] > own[:, None] - ROUNDING, -1).sum(axis=1)
    return np.asarray(found[matched < depth])
