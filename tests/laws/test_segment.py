from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcmem.ingest.segment import CHARS_PER_TOKEN, segment

words = st.lists(
    st.text(alphabet="abc.!?\"')] \n漢。", min_size=1, max_size=30), min_size=1, max_size=60
).map(" ".join)


def count(texts: object) -> list[int]:
    return [len(text.split()) for text in texts]  # type: ignore[attr-defined]


@given(words.filter(str.strip), st.integers(8, 20))
def test_pieces_keep_every_character_in_order_and_fit_the_budget(text: str, budget: int) -> None:
    pieces = segment(text, budget=budget, count_tokens=count)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece.strip() for piece in pieces)
    assert all(cost <= budget for cost in count(pieces))
    assert all(len(piece) <= budget * CHARS_PER_TOKEN for piece in pieces)
