"""Checks whether a pool has enough lines for a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gcmem.bench.data.pool import Family
from gcmem.errors import InvalidInputError

MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The minimum per state or family that is enough for any seed."""

    lines: int
    user_lines: int = 0
    """Minimum number of lines by the user."""
    invariants: int = 0
    three_states: bool = False
    """Whether a family needs three states, for A → B → C."""


def check_pool(pool: Sequence[Family], needs: Needs, *, name: str) -> None:
    """Raises InvalidInputError listing what the pool lacks for the dataset `name`."""
    lacks = list(_lacks(pool, needs))
    if lacks:
        more = len(lacks) - MOST_NAMED
        named = "; ".join(lacks[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
        raise InvalidInputError(f"the pool is too small for {name}: {named}")


def _lacks(pool: Sequence[Family], needs: Needs) -> Iterator[str]:
    if not pool:
        yield "there is no family to draw from"
        return
    if len({family.name for family in pool}) < len(pool):
        yield "two families have the same name"
    if needs.three_states and all(len(family.states) < 3 for family in pool):
        yield "no family has three states"
    for family in pool:
        if len(family.states) < 2:
            yield f"{family.name!r} has fewer than two states"
        if not family.questions:
            yield f"{family.name!r} has no question"
        if len(family.invariants) < needs.invariants:
            yield f"{family.name!r} has {len(family.invariants)} of {needs.invariants} invariants"
        for label, lines in family.states.items():
            what = f"{family.name!r}, state {label!r},"
            if len(lines) < needs.lines:
                yield f"{what} has {len(lines)} of {needs.lines} lines"
                continue
            by_user = sum(line.role == "user" for line in lines)
            if by_user < needs.user_lines:
                yield f"{what} has {by_user} of {needs.user_lines} lines by the user"
