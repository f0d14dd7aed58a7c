"""Whole numbers with a given sum and standard deviation."""

from __future__ import annotations

import random
import statistics

MOST_MOVES = 200_000


def whole_numbers(
    count: int, total: int, deviation: float, *, least: int, most: int, rng: random.Random
) -> list[int]:
    """Returns `count` numbers that sum to `total`, with the given deviation to one decimal place.

    Draws numbers around the mean, then moves single units between two of them: this changes the
    spread and keeps the sum.
    """
    mean = total / count
    numbers = [min(most, max(least, round(rng.gauss(mean, deviation)))) for _ in range(count)]
    while (missing := total - sum(numbers)) != 0:
        place = rng.randrange(count)
        moved = numbers[place] + (1 if missing > 0 else -1)
        if least <= moved <= most:
            numbers[place] = moved
    for _ in range(MOST_MOVES):
        gap = deviation - statistics.stdev(numbers)
        if abs(gap) < 0.05:
            return numbers
        a, b = rng.sample(range(count), 2)
        low, high = sorted((a, b), key=lambda n: numbers[n])
        step = 1 if gap > 0 else -1
        if step < 0 and numbers[high] - numbers[low] < 2:
            continue
        if numbers[high] + step <= most and numbers[low] - step >= least:
            numbers[high] += step
            numbers[low] -= step
    raise ValueError(f"no {count} numbers from {least} to {most} have sum {total}, SD {deviation}")
