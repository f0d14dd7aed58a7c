from __future__ import annotations

from gcmem import Memory, Turn
from gcmem.retrieve.turns import pieces_last
from gcmem.settings import Settings
from gcmem.testing import HashEncoder
from tests.conftest import day

LONG = " ".join(f"The tea of week {n} was good." for n in range(40))


def opened() -> Memory:
    return Memory(":memory:", encoder=HashEncoder(), settings=Settings(chunk_tokens=20))


def test_several_pieces_of_one_turn_take_one_place() -> None:
    with opened() as memory:
        pieces = memory.add(LONG, at=day(1))
        assert len(pieces) > 5
        others = memory.add([f"coffee {n} of the week" for n in range(3)], at=day(2))
        found = memory.candidates("the tea of week 7", k=4).items
        assert {item.chunk.id for item in found[:4]} == {
            found[0].chunk.id,
            *(chunk.id for chunk in others),
        }
        assert found[0].chunk.id in {piece.id for piece in pieces}
        ids = [piece.id for piece in reversed(pieces)] + [others[0].id]
        moved = pieces_last(ids, memory.store.log)
        assert moved == [ids[0], ids[-1], *ids[1:-1]]


def test_ids_that_only_look_like_pieces_are_left_alone() -> None:
    with opened() as memory:
        named = ("talk.1", "talk.2", "talk.3", "note", "other", "note.2")
        memory.add([Turn(id=name, text=f"tea {name}") for name in named])
        assert pieces_last(named, memory.store.log) == list(named)


def test_pieces_of_a_turn_without_an_id_share_their_name() -> None:
    with opened() as memory:
        first, second, *_ = memory.add(LONG)
        assert second.id == f"{first.id}.2"
