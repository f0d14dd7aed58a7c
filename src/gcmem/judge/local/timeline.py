"""States over time: what one chunk leaves open, the chunks before and after it settle.

The true state is constant for a while, then changes. Read as a hidden Markov chain, the noisy
stances of all chunks on a topic say far more together than any one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def posterior(stances: Matrix, on_topic: Matrix, *, switch: float, doubt: float) -> Matrix:
    """Returns each chunk's probabilities over the states, given all chunks, oldest first.

    `stances` has a row a chunk that sums to one over the states; a chunk counts as far as it is
    on the topic, and one that is not on it says nothing and changes nothing.
    """
    count, states = stances.shape
    seen = (1 - doubt) * stances + doubt / states
    seen = seen ** on_topic[:, None]
    forward, backward = np.empty_like(seen), np.ones_like(seen)
    belief = np.full(states, 1 / states)
    for n in range(count):
        belief = seen[n] * _moved(belief, switch * on_topic[n])
        belief /= belief.sum()
        forward[n] = belief
    for n in range(count - 2, -1, -1):
        ahead = _moved(seen[n + 1] * backward[n + 1], switch * on_topic[n + 1])
        backward[n] = ahead / ahead.sum()
    found = forward * backward
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _moved(belief: Matrix, switch: float) -> Matrix:
    """Returns the belief after one step; the chain is symmetric, so it serves both directions."""
    states = len(belief)
    if states == 1:
        return belief
    stay = 1 - switch
    leak = switch / (states - 1)
    return np.asarray((stay - leak) * belief + leak * belief.sum())
