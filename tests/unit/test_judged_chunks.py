"""What a memory does with verdicts besides searching."""

from __future__ import annotations

import pytest

from gcmem import Memory
from gcmem.errors import ChunkNotFoundError, InvalidInputError
from tests.conftest import day


def test_what_a_user_says_in_one_run_ends_what_they_said_in_another(memory: Memory) -> None:
    (old,) = memory.add("city=Porto", user_id="ana", run_id="1", at=day(1))
    memory.add("city=Braga", user_id="ben", run_id="2", at=day(2))
    (new,) = memory.add("city=Lyon", user_id="ana", run_id="2", at=day(3))
    memory.judge()
    (shadow,) = memory.outcomes([old]).shadows
    assert shadow.witness.chunk.id == new.id


def test_current_lists_every_claim_that_stands_page_by_page(memory: Memory) -> None:
    for number, text in enumerate(("city=Porto", "pet=cat", "city=Lyon", "tea=green")):
        memory.add(text, user_id="ana", at=day(number))
    assert memory.pending() == 4
    assert memory.current(user_id="ana") == ()
    memory.judge()
    assert memory.pending() == 0
    first = memory.current(user_id="ana", limit=2)
    assert [claim.text for claim in first] == ["tea=green", "city=Lyon"]
    rest = memory.current(user_id="ana", limit=2, after=first[-1])
    assert [claim.text for claim in rest] == ["pet=cat"]
    earlier = memory.current(user_id="ana", as_of=day(1))
    assert [claim.text for claim in earlier] == ["pet=cat", "city=Porto"]


def test_what_a_person_ended_as_a_whole_is_not_current(memory: Memory) -> None:
    (old,) = memory.add("We meet at nine. Lunch is at one.", user_id="ana", at=day(1))
    (new,) = memory.add("The meetings are off.", user_id="ana", at=day(2))
    memory.judge()
    assert len(memory.current(user_id="ana")) == 3
    memory.confirm(old.id, new.id)
    assert [claim.text for claim in memory.current(user_id="ana")] == ["The meetings are off."]


def test_a_person_must_name_two_chunks_of_the_scope_older_first(memory: Memory) -> None:
    old, new = (
        memory.add(text, user_id="ana", at=day(n))[0].id
        for n, text in enumerate(("city=Porto", "city=Lyon"))
    )
    with pytest.raises(InvalidInputError, match="older chunk first"):
        memory.confirm(new, old)
    with pytest.raises(InvalidInputError, match="same chunk"):
        memory.reject(old, old)
    with pytest.raises(ChunkNotFoundError):
        memory.confirm(old, new, user_id="ben")
    with pytest.raises(ChunkNotFoundError):
        memory.pin("nowhere")
    with pytest.raises(InvalidInputError, match="by="):
        memory.pin(old, by=" ")


def test_link_still_judges_and_says_its_new_name(memory: Memory) -> None:
    memory.add("city=Porto", user_id="ana")
    with pytest.warns(DeprecationWarning, match="judge"):
        assert memory.link().judged == 1
