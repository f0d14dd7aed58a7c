"""Bad input: a typed error that says what to do, and nothing is stored."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from gcmem import Memory, Settings, Turn
from gcmem.errors import (
    ChunkNotFoundError,
    EncoderMismatchError,
    FutureTimeError,
    InvalidFilterError,
    InvalidInputError,
    InvalidScopeError,
    InvalidTextError,
    NaiveTimeError,
    StoreCorruptError,
    StoreUnavailableError,
    StoreVersionError,
)
from gcmem.testing import HashEncoder
from tests.conftest import NOW, day


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "a\ud800b"])
def test_unusable_text_is_refused(memory: Memory, text: str) -> None:
    with pytest.raises(InvalidTextError):
        memory.add(text)
    with pytest.raises(InvalidTextError):
        memory.add(["fine", {"role": "user", "content": text}])
    with pytest.raises(InvalidTextError):
        memory.search(text)
    assert memory.get_all() == ()


def test_a_megabyte_is_split_and_kept_whole(memory: Memory) -> None:
    text = ("word " * 9 + "end. ") * 20_000
    chunks = memory.add(text)
    assert len(text) >= 1_000_000
    assert "".join("".join(c.text for c in chunks).split()) == "".join(text.split())
    assert [c.seq for c in chunks] == list(range(1, len(chunks) + 1))


def test_text_over_the_limit_is_refused(tmp_path: Path) -> None:
    with (
        Memory(
            tmp_path / "m.db", encoder=HashEncoder(), settings=Settings(max_text_chars=10)
        ) as memory,
        pytest.raises(InvalidTextError, match="max_text_chars"),
    ):
        memory.add("more than ten")


def test_naive_times_are_refused_everywhere(memory: Memory) -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    for call in (
        lambda: memory.add("x", at=naive),
        lambda: Turn(text="x", at=naive),
        lambda: memory.search("x", as_of=naive),
        lambda: memory.search("x", known_at=naive),
        lambda: memory.history(as_of=naive),
    ):
        with pytest.raises(NaiveTimeError, match=r"timezone\.utc"):
            call()


def test_a_time_in_the_year_9999_is_refused_unless_allowed(tmp_path: Path) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    with Memory(tmp_path / "a.db", encoder=HashEncoder(), clock=lambda: NOW) as memory:
        with pytest.raises(FutureTimeError, match="max_future"):
            memory.add("x", at=last)
        memory.add("soon", at=NOW + timedelta(hours=23))
    with Memory(
        tmp_path / "b.db", encoder=HashEncoder(), settings=Settings(max_future=None)
    ) as memory:
        (chunk,) = memory.add("x", at=last)
        assert memory.get(chunk.id).at == last
        assert memory.search("x", as_of=last).kept


@pytest.mark.parametrize(
    "moment",
    [
        "2026-01-01T00:00:00Z",
        date(2026, 1, 1),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
    ],
)
def test_what_is_no_moment_in_utc_is_refused(memory: Memory, moment: Any) -> None:
    for call in (
        lambda: memory.add("x", at=moment),
        lambda: memory.search("x", as_of=moment),
        lambda: memory.history(known_at=moment),
    ):
        with pytest.raises(InvalidInputError):
            call()


@pytest.mark.parametrize("k", [0, -1, 10**9, True, 1.5, "3"])
def test_k_must_be_a_sensible_whole_number(memory: Memory, k: Any) -> None:
    with pytest.raises(InvalidInputError, match="k="):
        memory.search("x", k=k)


@pytest.mark.parametrize(
    "filters",
    [
        {"a": {"gte": 3}},
        {"": 1},
        {'a"b': 1},
        {"a": []},
        {3: 1},
        {"a": object()},
        {"a": 2**70},
        {"a": "\ud800"},
        {"\ud800": 1},
        [1],
    ],
)
def test_unknown_filters_are_refused(memory: Memory, filters: dict[Any, Any]) -> None:
    with pytest.raises(InvalidFilterError):
        memory.search("x", filters=filters)


@pytest.mark.parametrize("user", ["", " ", 3, "a\x00", "x" * 300])
def test_unusable_scopes_are_refused(memory: Memory, user: Any) -> None:
    with pytest.raises(InvalidScopeError):
        memory.add("x", user_id=user)
    with pytest.raises(InvalidScopeError):
        memory.search("x", user_id=user)


def test_other_mistakes_are_told(memory: Memory) -> None:
    for call in (
        lambda: memory.search("x", mode="hide"),  # type: ignore[arg-type]
        lambda: memory.ask("x", path="best"),  # type: ignore[arg-type]
        lambda: memory.ask("x", options="abc"),
        lambda: memory.ask("x", options=[""]),
        lambda: memory.add(3),  # type: ignore[arg-type]
        lambda: memory.add([3]),  # type: ignore[list-item]
        lambda: memory.add({"role": "user"}),
        lambda: memory.add("x", metadata={"a": object()}),
        lambda: memory.add("x", metadata={"a": float("nan")}),
        lambda: memory.add("x", metadata=[1]),  # type: ignore[arg-type]
        lambda: memory.add("x", metadata={1: "a"}),  # type: ignore[dict-item]
        lambda: memory.add({"content": "x", "metadata": "abc"}),
        lambda: memory.add("x", metadata={"a": nested(100_000)}),
        lambda: memory.add("x", speaker="\ud800"),
        lambda: memory.add("x", session=3),  # type: ignore[arg-type]
        lambda: memory.search("x", options=None),  # type: ignore[arg-type]
        lambda: memory.get_all(limit="3"),  # type: ignore[arg-type]
        lambda: memory.ask_paths("x", paths="gcmem"),  # type: ignore[arg-type]
        lambda: memory.ask_paths("x", paths=["bogus"]),  # type: ignore[list-item]
        lambda: memory.forget(),
        lambda: memory.forget(ids="abc"),
        lambda: memory.get_all(limit=-1),
        lambda: Settings(chunk_tokens=0),
        lambda: Memory("a", store=memory.store),
    ):
        with pytest.raises(InvalidInputError):
            call()
    for missing in (lambda: memory.get("nope"), lambda: memory.delete("nope")):
        with pytest.raises(ChunkNotFoundError, match="nope"):
            missing()
    with pytest.raises(ChunkNotFoundError):
        memory.get("\ud800")
    assert memory.get_all() == ()


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def test_a_url_is_not_taken_for_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match="from_url"):
        Memory("postgresql://somewhere/memory")
    assert not list(tmp_path.iterdir())


def test_a_closed_memory_says_so(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db", encoder=HashEncoder())
    memory.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        memory.get_all()


def test_a_batch_with_one_bad_message_stores_none(memory: Memory) -> None:
    with pytest.raises(InvalidInputError):
        memory.add(["good", Turn(text="late", at=NOW + timedelta(days=900))])
    assert memory.get_all() == ()


def test_a_damaged_or_foreign_file_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add([f"fact {n}" for n in range(500)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreCorruptError, match="cut off"):
        Memory(path, encoder=HashEncoder())
    path.write_bytes(whole[:50])
    with pytest.raises(StoreCorruptError):
        Memory(path, encoder=HashEncoder())
    path.write_bytes(b"just some text, long enough to be read as a header" * 10)
    with pytest.raises(StoreCorruptError):
        Memory(path, encoder=HashEncoder())
    foreign = tmp_path / "other.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreCorruptError, match="not a gcmem store"):
        Memory(foreign, encoder=HashEncoder())


def test_a_store_of_a_newer_gcmem_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    Memory(path, encoder=HashEncoder()).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StoreVersionError, match="upgrade"):
        Memory(path, encoder=HashEncoder())


@pytest.mark.parametrize("path", ["/proc/gcmem/m.db", "/dev/null/m.db"])
def test_a_folder_that_can_not_be_written_is_told(path: str) -> None:
    with pytest.raises(StoreUnavailableError):
        Memory(path, encoder=HashEncoder())


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="folder"):
        Memory(tmp_path, encoder=HashEncoder())


def test_another_encoder_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add("x", at=day(1))
    with pytest.raises(EncoderMismatchError, match=f"gcmem reindex --path {path}"):
        Memory(path, encoder=HashEncoder(name="other"))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("gcmem-encoder@9", "local"),
        ("multilingual:use-v3@1", "multilingual"),
        ("onnx:e5@1a2b?pooling=mean", "onnx:FOLDER"),
        ("gguf:nomic@1a2b", "gguf:FILE"),
    ],
)
def test_the_command_names_the_encoder_that_is_in_use(given: str, name: str) -> None:
    error = EncoderMismatchError(stored="x", given=given, location="m.db")
    assert str(error).endswith(f"gcmem reindex --path m.db --encoder {name}")


def test_a_reader_notices_that_another_process_re_embedded(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    other = HashEncoder(name="other", dimensions=16)
    with Memory(path, encoder=HashEncoder()) as memory:
        memory.add("x", at=day(1))
        memory.search("x")
        memory.store.index.rebuild(other)
        with pytest.raises(EncoderMismatchError):
            memory.search("x")
        with pytest.raises(EncoderMismatchError):
            memory.add("y")
