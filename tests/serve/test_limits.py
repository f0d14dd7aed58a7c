from __future__ import annotations

import asyncio
import json
import threading

import pytest
from starlette.testclient import TestClient

from gcmem import Memory
from gcmem.errors import InvalidInputError, OverloadedError, RateLimitedError
from gcmem.serve.http.limits import Limits, TokenBuckets, is_too_deep
from gcmem.serve.http.workers import Workers
from gcmem.serve.keys import KeyStore
from tests.serve.conftest import app_over, bearer


def test_a_bucket_empties_and_fills_again_for_each_caller_alone() -> None:
    now = [0.0]
    buckets = TokenBuckets(Limits(rate_per_s=2, burst=3), clock=lambda: now[0])
    for _ in range(3):
        buckets.take("a")
    with pytest.raises(RateLimitedError) as refused:
        buckets.take("a")
    assert refused.value.retry_after_s == pytest.approx(0.5)
    buckets.take("b")
    now[0] = 0.5
    buckets.take("a")
    with pytest.raises(RateLimitedError):
        buckets.take("a")


def test_a_key_that_asks_too_often_is_told_when_to_come_back(
    memory: Memory, keys: KeyStore
) -> None:
    ana, bob = bearer(keys, "ana"), bearer(keys, "bob")
    app = app_over(memory, keys=keys, limits=Limits(rate_per_s=0.1, burst=2))
    with TestClient(app, base_url="http://localhost") as client:
        assert [client.get("/v1/whoami", headers=ana).status_code for _ in range(3)] == [
            200,
            200,
            429,
        ]
        assert client.get("/v1/whoami", headers=ana).headers["retry-after"] == "10"
        assert client.get("/v1/whoami", headers=bob).status_code == 200


@pytest.mark.parametrize("depth", [1, 5, 31, 32])
def test_what_is_nested_within_the_limit_passes(depth: int) -> None:
    nested: object = 1
    for level in range(depth):
        nested = [nested, 1] if level % 2 else {"a": nested, "b": "[[[["}
    body = json.dumps([nested] * 40 if depth < 32 else nested).encode()
    assert not is_too_deep(body, depth=32)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 33 + b"]" * 33,
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b"[" * 1000,
        b"]" * 10 + b"[" * 40,
    ],
)
def test_what_is_nested_deeper_does_not(body: bytes) -> None:
    assert is_too_deep(body, depth=32)


def test_brackets_in_strings_count_for_nothing() -> None:
    assert not is_too_deep(json.dumps({"a": '[{"\\' * 1000}).encode(), depth=32)


def test_when_too_many_wait_the_next_is_turned_away() -> None:
    async def crowd() -> list[object]:
        workers = Workers(threads=1, waiting=1, waiting_per_caller=9)
        gate = threading.Event()
        calls = [asyncio.create_task(workers.run(gate.wait)) for _ in range(3)]
        await asyncio.sleep(0.05)
        gate.set()
        done = await asyncio.gather(*calls, return_exceptions=True)
        workers.close()
        return list(done)

    done = asyncio.run(crowd())
    assert done[:2] == [True, True]
    assert isinstance(done[2], OverloadedError)


def test_limits_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="threads=0"):
        Limits(threads=0)
