from __future__ import annotations

from gcmem.ranking import ranked


def test_the_most_similar_come_first() -> None:
    assert ranked([0.1, 0.9, 0.5], [3, 1, 2]).tolist() == [1, 2, 0]


def test_what_only_rounding_parts_is_equal_and_the_newest_comes_first() -> None:
    assert ranked([0.5000004, 0.5, 0.5000001, 0.9], [1, 3, 2, 0]).tolist() == [3, 1, 2, 0]
    assert ranked([0.50001, 0.5], [1, 2]).tolist() == [0, 1]


def test_one_or_none_is_in_order() -> None:
    assert ranked([0.5], [1]).tolist() == [0]
    assert ranked([], []).tolist() == []
