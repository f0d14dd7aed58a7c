"""Infers states over time with a hidden Markov model.

The true state is constant for a while, then changes. The noisy stances of all chunks on a topic
together say much more about it than any single one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def posterior(stances: Matrix, on_topic: Matrix, *, switch: float, doubt: float) -> Matrix:
    """Returns each chunk's probabilities of the states, given all chunks, oldest first.

    `stances` has one row per chunk, and each row sums to one. A chunk is weighted by `on_topic`,
    so one with a weight of 0 changes nothing.
    """
    count, states = stances.shape
    seen = (1 - doubt) * stances + doubt / states
    seen = seen ** on_topic[:, None]
    forward, backward = np.empty_like(seen), np.ones_like(seen)
    belief = np.full(states, 1 / states)
    for n in range(count):
        belief = seen[n] * _after_step(belief, switch * on_topic[n])
        belief /= belief.sum()
        forward[n] = belief
    for n in range(count - 2, -1, -1):
        ahead = _after_step(seen[n + 1] * backward[n + 1], switch * on_topic[n + 1])
        backward[n] = ahead / ahead.sum()
    found = forward * backward
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _after_step(belief: Matrix, switch: float) -> Matrix:
    """Returns the belief after one step; the chain is symmetric, so this works both ways."""
    states = len(belief)
    if states == 1:
        return belief
    stay = 1 - switch
    leak = switch / (states - 1)
    return np.asarray((stay - leak) * belief + leak * belief.sum())
