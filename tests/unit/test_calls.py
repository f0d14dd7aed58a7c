from __future__ import annotations

import threading

import numpy as np

from gcmem.calls import ScopedCache, current_call, one_call
from gcmem.types import Scope

ANA, BOB = Scope(user_id="ana"), Scope(user_id="bob")


def kept(cache: ScopedCache, scope: Scope, key: str) -> object:
    with one_call(cache, scope) as call:
        return call.get(key)


def keep(cache: ScopedCache, scope: Scope, key: str, *, weight: int = 1) -> None:
    with one_call(cache, scope) as call:
        call.put(key, f"{key} of {scope.user_id}", weight=weight)


def test_what_a_scope_keeps_is_found_by_exactly_that_scope() -> None:
    cache = ScopedCache()
    keep(cache, ANA, "a")
    keep(cache, BOB, "a")
    assert kept(cache, ANA, "a") == "a of ana"
    assert kept(cache, BOB, "a") == "a of bob"
    for other in (Scope(), Scope(user_id="ana", run_id="1"), Scope(agent_id="ana")):
        assert kept(cache, other, "a") is None


def test_the_least_recently_used_goes_first_by_weight() -> None:
    cache = ScopedCache(capacity=4)
    keep(cache, ANA, "a")
    keep(cache, ANA, "b", weight=2)
    keep(cache, ANA, "a")  # replaced, not added
    keep(cache, ANA, "c", weight=2)
    assert [kept(cache, ANA, key) is not None for key in "abc"] == [True, False, True]
    keep(cache, ANA, "d", weight=5)
    assert [kept(cache, ANA, key) is not None for key in "abcd"] == [False] * 4


def test_erasing_drops_what_is_kept_for_every_scope_that_could_see_it() -> None:
    cache = ScopedCache()
    run, agent = Scope(user_id="ana", run_id="1"), Scope(agent_id="bot")
    scopes = (ANA, run, agent, Scope(), BOB, Scope(user_id="bob", agent_id="bot"))
    for scope in scopes:
        keep(cache, scope, "a")
    cache.forget([ANA])
    assert [kept(cache, scope, "a") is not None for scope in scopes] == [False] * 4 + [True] * 2


def test_a_call_that_was_going_on_while_its_scope_was_erased_keeps_nothing() -> None:
    cache = ScopedCache()
    with one_call(cache, ANA) as ana, one_call(cache, BOB) as bob:
        cache.forget([ANA])
        ana.put("a", 1)
        bob.put("a", 1)
    assert (kept(cache, ANA, "a"), kept(cache, BOB, "a")) == (None, 1)


def test_no_text_stays_in_memory() -> None:
    cache = ScopedCache()
    keep(cache, ANA, "My PIN is 4711.")
    assert "4711" not in repr([place for place, _ in cache._kept.items()])


def test_what_is_computed_in_a_call_ends_with_it() -> None:
    with one_call() as outer:
        current_call().computed["a"] = 1
        with one_call():
            assert current_call().computed == {}
        assert current_call() is outer
        assert outer.computed == {"a": 1}
    assert current_call().computed == {}
    assert current_call() is not current_call()


def test_threads_keep_their_calls_apart() -> None:
    cache = ScopedCache(capacity=50)
    wrong: list[object] = []

    def work(user: str) -> None:
        for number in range(300):
            with one_call(cache, Scope(user_id=user)) as call:
                key = number % 20
                found = call.get(key)
                if found is not None and found[0] != user:
                    wrong.append(found)
                call.put(key, (user, np.zeros(1)))
            if number % 50 == 0:
                cache.forget([Scope(user_id=user)])

    threads = [threading.Thread(target=work, args=(f"user {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
