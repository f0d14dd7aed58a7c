from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcmem.errors import (
    InvalidInputError,
    MissingExtraError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
    StoreVersionError,
)
from gcmem.protocols import Store
from gcmem.store.qdrant import open_qdrant
from gcmem.store.qdrant.address import parse_url
from gcmem.testing import HashEncoder
from gcmem.testing.store_suite import EVERYTHING, chunk
from tests.qdrant_http import StandIn

ENCODER = HashEncoder()
KEY = "s3cret-key"


def opened(address: str, *, timeout_s: int = 10) -> Store:
    return open_qdrant(f"qdrant://{address}/m", encoder=ENCODER, stm_size=5, timeout_s=timeout_s)


def add(store: Store, *texts: str) -> None:
    store.log.append([chunk(text) for text in texts], ENCODER.encode(texts), encoder_id=ENCODER.id)


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    stand_in = StandIn()
    yield stand_in
    stand_in.data.close()


CALLS: list[Callable[[Store], object]] = [
    lambda store: add(store, "b"),
    lambda store: store.log.count(EVERYTHING),
    lambda store: store.log.get(["x"]),
    lambda store: list(store.log.scan(EVERYTHING)),
    lambda store: store.log.delete(["x"]),
    lambda store: store.index.search(ENCODER.encode(["a"]), k=1, where=EVERYTHING),
    lambda store: store.buffer.recent(EVERYTHING),
    lambda store: store.log.encoder_id,
]


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_gone_is_a_typed_error_and_one_that_is_back_is_used(
    stand_in: StandIn, call: Callable[[Store], object]
) -> None:
    with stand_in.listening() as address:
        store = opened(address)
        add(store, "a")
    with pytest.raises(StoreUnavailableError, match="check the address and that the server runs"):
        call(store)
    with stand_in.listening():
        call(store)
        assert "a" in [c.text for c in store.log.scan(EVERYTHING)]
        store.close()


def test_verdicts_that_can_not_be_kept_are_not_kept(stand_in: StandIn) -> None:
    with stand_in.listening() as address:
        store = opened(address)
    assert store.verdicts is not None
    store.verdicts.put("oracle@1", "q", {("a", "b"): 0.5})
    with pytest.raises(StoreUnavailableError):
        store.verdicts.get("oracle@1", "q", [("a", "b")])
    store.close()


def test_opening_says_that_nothing_listens(stand_in: StandIn) -> None:
    with stand_in.listening() as address:
        pass
    with pytest.raises(StoreUnavailableError, match="can't reach qdrant"):
        opened(address)


def test_how_many_requests_a_call_takes(stand_in: StandIn) -> None:
    with stand_in.listening() as address:
        store = opened(address)
        add(store, "a")
        question = ENCODER.encode(["a"])
        calls: dict[str, Callable[[], object]] = {
            "append": lambda: add(store, "b", "c"),
            "search": lambda: store.index.search(question, k=1, where=EVERYTHING),
            "get": lambda: store.log.get(["x"]),
            "count": lambda: store.log.count(EVERYTHING),
        }
        taken = {}
        for name, call in calls.items():
            stand_in.requests.clear()
            call()
            taken[name] = len(stand_in.requests)
        assert taken == {"append": 8, "search": 2, "get": 2, "count": 2}
        store.close()


def test_a_slow_server_is_given_up_after_the_timeout(stand_in: StandIn) -> None:
    with stand_in.listening() as address:
        store = opened(address, timeout_s=1)
        stand_in.delay_s = 2.5
        started = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="within 1 s; try again, or raise timeout"):
            store.log.count(EVERYTHING)
        assert time.monotonic() - started < 2.4
        store.close()


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (500, StoreUnavailableError, "answered 500"),
        (503, StoreUnavailableError, "check the server"),
        (401, StoreUnavailableError, "rejected the API key"),
        (403, StoreUnavailableError, "rejected the API key"),
        (429, StoreUnavailableError, "try again"),
        (400, StoreError, "refused"),
    ],
)
def test_answers_that_are_errors_are_typed_and_never_show_the_key(
    stand_in: StandIn, status: int, error: type[StoreError], says: str
) -> None:
    with stand_in.listening() as address:
        with pytest.warns(UserWarning, match="insecure connection"):
            store = open_qdrant(f"qdrant://:{KEY}@{address}/m", encoder=ENCODER, stm_size=5)
        add(store, "a")
        assert {headers["api-key"] for _, _, headers in stand_in.requests} == {KEY}
        assert KEY not in store.log.location
        stand_in.status = status
        with pytest.raises(error, match=says) as raised:
            store.log.count(EVERYTHING)
        assert KEY not in str(raised.value)
        stand_in.status = None
        assert store.log.count(EVERYTHING) == 1
        store.close()


def test_a_server_too_old_for_conditional_writes_is_refused(stand_in: StandIn) -> None:
    stand_in.version = "1.15.4"
    with (
        stand_in.listening() as address,
        pytest.raises(StoreUnavailableError, match=r"1\.16 or newer"),
    ):
        opened(address)


def test_a_collection_of_others_and_a_newer_store_are_left_alone(stand_in: StandIn) -> None:
    with stand_in.listening() as address:
        stand_in.data.create_collection("m", vectors_config={})
        with pytest.raises(StoreCorruptError, match="not a gcmem store"):
            opened(address)
        assert [c.name for c in stand_in.data.get_collections().collections] == ["m"]
        stand_in.data.delete_collection("m")
        opened(address).close()
        points, _ = stand_in.data.scroll("m-state")
        stand_in.data.set_payload("m-state", {"schema": 99}, [p.id for p in points])
        with pytest.raises(StoreVersionError, match="upgrade gcmem"):
            opened(address)


# The client leaves its lock file open where it can't have the lock.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_in_use_is_a_typed_error(tmp_path: Path) -> None:
    url = f"qdrant://{tmp_path}/store"
    store = open_qdrant(url, encoder=ENCODER, stm_size=5)
    with pytest.raises(StoreUnavailableError, match="nothing else has it open"):
        open_qdrant(url, encoder=ENCODER, stm_size=5)
    store.close()
    with pytest.raises(StoreUnavailableError):
        store.log.count(EVERYTHING)


@pytest.mark.parametrize(
    "url",
    [
        "redis://host/x",
        "qdrant://host:port/x",
        "qdrant:///",
        "qdrant://host/a/b",
        "qdrant://host/x?shards=3",
        "qdrant://host/x?shard_number=three",
        "qdrant://host/x?timeout_s=0",
    ],
)
def test_urls_that_make_no_sense_are_refused(url: str) -> None:
    with pytest.raises(InvalidInputError):
        open_qdrant(url, encoder=ENCODER, stm_size=5)


def test_urls_say_where_and_how() -> None:
    address, settings = parse_url(
        "qdrant+https://:p%40ss@db.example/notes?shard_number=3&replication_factor=2"
    )
    assert (address.url, address.collection) == ("https://db.example:6333", "notes")
    assert address.api_key == "p@ss"
    assert "p@ss" not in repr(address) + address.location
    assert settings == {"shard_number": 3, "replication_factor": 2}
    assert parse_url("qdrant://[::1]:7000")[0].url == "http://[::1]:7000"
    assert parse_url("qdrant:///data/q?collection=n")[0].location == "qdrant:///data/q"
    assert parse_url("qdrant://:memory:")[0].path == ":memory:"


def test_a_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError, match=r"gcmem\[qdrant\]"):
        open_qdrant("qdrant://:memory:", encoder=ENCODER, stm_size=5)
