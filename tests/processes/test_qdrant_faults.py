"""What happens when Qdrant fails beside a log that does not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcmem import Memory
from gcmem.errors import (
    ErasurePendingWarning,
    IndexElsewhereError,
    InvalidInputError,
    MissingExtraError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
from gcmem.protocols import Store
from gcmem.store.qdrant.address import parse_url
from gcmem.store.qdrant.engine import open_engine
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder
from gcmem.testing.store_harness import EVERYTHING, chunk, texts
from gcmem.transfer import migrate, open_source
from tests.qdrant_http import StandIn

ENCODER = HashEncoder()
KEY = "s3cret-key"


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    stand_in = StandIn()
    yield stand_in
    stand_in.data.close()


def opened(folder: Path, address: str, *, options: str = "", log: str = "log.db") -> Store:
    url = f"sqlite:///{folder}/{log}?index=qdrant://{address}/m{options}"
    return open_store(url, encoder=ENCODER, stm_size=5)


def add(store: Store, *said: str) -> None:
    store.append([chunk(text) for text in said], ENCODER.encode(said), encoder_id=ENCODER.id)


def found(store: Store) -> list[str]:
    (hits,) = store.index.search(ENCODER.encode(["tea"]), k=100, where=EVERYTHING)
    return sorted(texts(store.log.get([chunk_id for chunk_id, _ in hits]).values()))


WRITER = """
import os, sys
from gcmem.store.beside import IndexBeside
from gcmem.store.urls import open_store
from gcmem.testing import HashEncoder
from gcmem.testing.store_suite import chunk

encoder = HashEncoder()
store = open_store(sys.argv[1], encoder=encoder, stm_size=5)

def add(text):
    store.append([chunk(text)], encoder.encode([text]), encoder_id=encoder.id)

add("tea one")
# From here on, the process dies after the log has the chunk and before the index has it.
IndexBeside.upsert = lambda *_, **__: os.kill(os.getpid(), 9)
add("tea two")
"""


def test_a_process_killed_between_log_and_index_loses_nothing(
    stand_in: StandIn, tmp_path: Path
) -> None:
    with stand_in.listening() as address:
        url = f"sqlite:///{tmp_path}/log.db?index=qdrant://{address}/m"
        killed = subprocess.run([sys.executable, "-c", WRITER, url], timeout=60)
        assert killed.returncode == -signal.SIGKILL
        store = opened(tmp_path, address)
        assert texts(store.log.scan(EVERYTHING)) == ["tea one", "tea two"]
        assert (store.index.state().last_seq, store.log.state().last_seq) == (1, 2)
        assert found(store) == ["tea one", "tea two"]
        assert store.index.state() == store.log.state()
        store.close()


def test_while_the_server_is_down_the_log_takes_chunks_and_forgets_them(
    stand_in: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with stand_in.listening() as address:
        store = opened(tmp_path, address)
        add(store, "tea one", "tea two")
        assert found(store) == ["tea one", "tea two"]
    add(store, "tea three")
    assert "the next search applies it" in caplog.text
    (first, *_) = store.log.scan(EVERYTHING)
    assert store.delete([first.id]) == 1
    with pytest.raises(StoreUnavailableError, match="check the address and that the server runs"):
        found(store)
    with stand_in.listening():
        assert found(store) == ["tea three", "tea two"]
        assert stand_in.data.retrieve("m", ids=[first.seq or 0]) == []
        store.close()


def test_a_lost_collection_is_built_anew_from_the_log(stand_in: StandIn, tmp_path: Path) -> None:
    with stand_in.listening() as address:
        store = opened(tmp_path, address)
        add(store, "tea one", "tea two")
        stand_in.data.delete_collection("m.a")
        assert found(store) == ["tea one", "tea two"]
        store.close()


def test_a_log_that_lost_chunks_is_noticed_and_a_rebuild_mends_the_index(
    stand_in: StandIn, tmp_path: Path
) -> None:
    with stand_in.listening() as address:
        store = opened(tmp_path, address)
        add(store, "tea one")
        store.log.backup(tmp_path / "copy.db")  # type: ignore[attr-defined]
        add(store, "tea two")
        store.close()
        restored = opened(tmp_path, address, log="copy.db")
        with pytest.raises(StoreCorruptError, match="gcmem reindex"):
            found(restored)
        assert restored.index.rebuild(ENCODER) == 1
        assert found(restored) == ["tea one"]
        restored.close()


def test_two_stores_never_share_a_collection(stand_in: StandIn, tmp_path: Path) -> None:
    with stand_in.listening() as address:
        one, other = opened(tmp_path, address), opened(tmp_path, address, log="other.db")
        add(one, "tea one")
        with pytest.raises(StoreCorruptError, match="a collection of its own"):
            add(other, "tea two")
        assert list(other.log.scan(EVERYTHING)) == []
        one.close()
        other.close()


def test_a_wrong_collection_costs_a_store_nothing(stand_in: StandIn, tmp_path: Path) -> None:
    with stand_in.listening() as address:
        one = opened(tmp_path, address)
        add(one, "tea one")
        one.close()
        plain = open_store(str(tmp_path / "plain.db"), encoder=ENCODER, stm_size=5)
        add(plain, "tea two")
        plain.close()
        with pytest.raises(StoreCorruptError, match="a collection of its own"):
            opened(tmp_path, address, log="plain.db")
        plain = open_store(str(tmp_path / "plain.db"), encoder=ENCODER, stm_size=5)
        assert found(plain) == ["tea two"]
        plain.close()


def test_vectors_that_are_elsewhere_are_not_mixed_with_new_ones(
    stand_in: StandIn, tmp_path: Path
) -> None:
    with stand_in.listening() as address:
        store = opened(tmp_path, address)
        add(store, "tea one")
        store.close()
        plain = open_store(str(tmp_path / "log.db"), encoder=ENCODER, stm_size=5)
        for act in (found, lambda store: add(store, "tea two")):
            with pytest.raises(IndexElsewhereError, match="gcmem reindex"):
                act(plain)
        assert texts(plain.log.scan(EVERYTHING)) == ["tea one"]
        assert plain.index.rebuild(ENCODER) == 1
        assert found(plain) == ["tea one"]
        plain.close()


def test_forgetting_says_what_is_left_in_an_index_that_is_down(
    stand_in: StandIn, tmp_path: Path
) -> None:
    with stand_in.listening() as address:
        memory = Memory(store=opened(tmp_path, address), encoder=ENCODER)
        first, second = memory.add(["tea one", "tea two"])
        memory.forget(ids=[first.id])
        assert memory.erasing() is None
    with pytest.warns(ErasurePendingWarning, match="next search"):
        memory.forget(ids=[second.id])
    with stand_in.listening():
        memory.candidates("tea")
        assert memory.erasing() is None
        memory.close()


def test_a_killed_rebuild_goes_on_where_it_stopped(stand_in: StandIn, tmp_path: Path) -> None:
    other = HashEncoder(name="other", dimensions=16)
    with stand_in.listening() as address:
        store = opened(tmp_path, address)
        add(store, *(f"tea {n}" for n in range(600)))
        seen: list[int] = []

        def stop(done: int, total: int) -> None:
            seen.append(done)
            if len(seen) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.index.rebuild(other, progress=stop)
        assert store.index.encoder_id == ENCODER.id
        embedded: list[int] = []
        other_encode = other.encode
        other.encode = lambda said: (embedded.append(len(said)), other_encode(said))[1]  # type: ignore[method-assign,assignment,func-returns-value]
        assert store.index.rebuild(other) == 600
        assert sum(embedded) == 600 - 256
        assert store.index.encoder_id == other.id
        assert [c.name for c in stand_in.data.get_collections().collections] == ["m.b"]
        store.close()


def test_how_many_requests_a_call_takes(stand_in: StandIn, tmp_path: Path) -> None:
    with stand_in.listening() as address:
        store = opened(tmp_path, address)
        add(store, "a")
        question = ENCODER.encode(["a"])
        calls: dict[str, Callable[[], object]] = {
            "append": lambda: add(store, "b", "c"),
            "search": lambda: store.index.search(question, k=1, where=EVERYTHING),
            "get": lambda: store.log.get(["x"]),
        }
        taken = {}
        for name, call in calls.items():
            stand_in.requests.clear()
            call()
            taken[name] = len(stand_in.requests)
        assert taken == {"append": 4, "search": 2, "get": 0}
        store.close()


def test_a_slow_server_is_given_up_after_the_timeout(stand_in: StandIn, tmp_path: Path) -> None:
    with stand_in.listening() as address:
        store = opened(tmp_path, address, options="?timeout_s=1")
        stand_in.delay_s = 2.5
        started = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="within 1 s; try again, or raise timeout"):
            found(store)
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
    stand_in: StandIn, tmp_path: Path, status: int, error: type[StoreError], says: str
) -> None:
    with stand_in.listening() as address:
        with pytest.warns(UserWarning, match="insecure connection"):
            store = opened(tmp_path, f":{KEY}@{address}")
        add(store, "tea")
        assert {headers["api-key"] for _, _, headers in stand_in.requests} == {KEY}
        stand_in.status = status
        with pytest.raises(error, match=says) as raised:
            found(store)
        assert KEY not in str(raised.value)
        stand_in.status = None
        assert found(store) == ["tea"]
        store.close()


def test_a_server_too_old_for_conditional_writes_is_refused(
    stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.version = "1.15.4"
    with (
        stand_in.listening() as address,
        pytest.raises(StoreUnavailableError, match=r"1\.16 or newer"),
    ):
        opened(tmp_path, address)


def test_a_collection_of_others_is_left_alone(stand_in: StandIn, tmp_path: Path) -> None:
    with stand_in.listening() as address:
        stand_in.data.create_collection("m", vectors_config={})
        with pytest.raises(StoreCorruptError, match=r"not one of gcmem's"):
            opened(tmp_path, address)
        assert [c.name for c in stand_in.data.get_collections().collections] == ["m"]


def old_store(stand_in: StandIn) -> None:
    """Makes what an older gcmem left on a server: a log of chunks, and a point that orders them."""
    from qdrant_client import models

    def payload(seq: int, text: str, *, batch: int) -> dict[str, object]:
        return {
            "id": f"c{seq}", "text": text, "at": "2026-01-01T00:00:00.000000+00:00",
            "recorded_at": "2026-01-02T00:00:00.000000+00:00", "speaker": "user", "session": None,
            "trust": 1, "user_id": "ana", "metadata": json.dumps({"n": seq}), "tags": [],
            "seq": seq, "batch": batch,
        }  # fmt: skip

    size = models.VectorParams(size=3, distance=models.Distance.COSINE)
    stand_in.data.create_collection("m-1a2b", vectors_config=size)
    stand_in.data.create_collection("m-state", vectors_config={})
    rows = [(2, "tea two", 2), (1, "tea one", 1), (3, "never finished", 3), (4, "given up", 4)]
    stand_in.data.upsert(
        "m-1a2b",
        points=[
            models.PointStruct(
                id=str(uuid), vector=[1.0, 0.0, 0.0], payload=payload(seq, text, batch=batch)
            )
            for uuid, (seq, text, batch) in zip(
                ("0" * 31 + str(n) for n in range(4)), rows, strict=True
            )
        ],
    )
    state = {
        "schema": 1, "version": 9, "last_seq": 4, "encoder_id": "old@1", "collection": "m-1a2b",
        "open": [{"first_seq": 3, "owner": "x", "since_s": 0.0, "collection": "m-1a2b"}],
        "dead": [4], "rebuild": None,
    }  # fmt: skip
    point = models.PointStruct(id="f" * 32, vector={}, payload=state)
    stand_in.data.upsert("m-state", points=[point])


def test_a_store_of_an_older_version_names_the_command_that_copies_it(
    stand_in: StandIn, tmp_path: Path
) -> None:
    old_store(stand_in)
    with stand_in.listening() as address:
        with pytest.raises(StoreCorruptError, match="gcmem migrate qdrant"):
            opened(tmp_path, address)
        with pytest.raises(InvalidInputError, match="gcmem migrate qdrant"):
            Memory.from_url(f"qdrant://{address}/m", encoder=ENCODER)
        source = open_source(f"qdrant://{address}/m", encoder=ENCODER)
        target = open_source(str(tmp_path / "new.db"), encoder=ENCODER)
        moved = migrate(source, target, encoder=ENCODER)
        assert moved.copied.added == 2
        assert moved.verified is not None
        assert texts(target.log.scan(EVERYTHING)) == ["tea one", "tea two"]
        (first, _) = target.log.scan(EVERYTHING)
        assert (first.id, first.scope.user_id, dict(first.metadata)) == ("c1", "ana", {"n": 1})
        source.close()
        target.close()
        with pytest.raises(InvalidInputError, match="no store of an older gcmem"):
            open_source(f"qdrant://{address}/another", encoder=ENCODER)


# The client leaves its lock file open where it can't have the lock.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_in_use_is_a_typed_error(tmp_path: Path) -> None:
    url = f"qdrant://{tmp_path}/index"
    engine = open_engine(url)
    with pytest.raises(StoreUnavailableError, match="nothing else has it open"):
        open_engine(url)
    engine.close()
    with pytest.raises(StoreUnavailableError):
        engine.mark()


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
        open_store(f"sqlite:///:memory:?index={url}", encoder=ENCODER, stm_size=5)


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
        open_store("sqlite:///:memory:?index=qdrant://:memory:", encoder=ENCODER, stm_size=5)
