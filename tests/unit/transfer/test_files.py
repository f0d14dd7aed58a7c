"""Files in and out: formats, filters, bad rows, damage, verification."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gcmem import Chunk, Memory, Scope
from gcmem.errors import (
    BadRowError,
    EncoderMismatchError,
    InvalidInputError,
    MissingExtraError,
    StoreUnavailableError,
    TransferFormatError,
    VerificationError,
)
from gcmem.protocols import Store
from gcmem.store import open_embedded
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.transfer import export_file, import_file, migrate, verify
from gcmem.transfer.jsonl import JsonlFile
from gcmem.types import ORIGIN_KEY, ChunkFilter
from tests.conftest import NOW, day, same_slot

ENCODER = HashEncoder()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_embedded(tmp_path / "target.db", encoder=ENCODER, stm_size=5)
    yield store
    store.close()


def write(path: Path, *rows: Any) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def chunks_in(store: Store) -> list[Chunk]:
    return list(store.log.scan(ChunkFilter()))


def put(store: Store, count: int, *, first_day: float = 0, name: str = "c") -> None:
    chunks = [
        Chunk(
            id=f"{name}{n}",
            text=f"{name}={n}",
            at=day(first_day + n),
            recorded_at=day(first_day + n),
        )
        for n in range(count)
    ]
    store.append(chunks, ENCODER.encode([c.text for c in chunks]), encoder_id=ENCODER.id)


def test_an_export_begins_with_a_header_and_ends_with_a_digest(
    memory: Memory, tmp_path: Path
) -> None:
    memory.add("tea", user_id="ana", at=day(1), metadata={"n": 1})
    done = export_file(memory.store, tmp_path / "a.jsonl")
    header, row, end = map(json.loads, (tmp_path / "a.jsonl").read_text("utf-8").splitlines())
    assert header == {
        "format": "gcmem-chunks", "version": 1, "encoder": "hash-32@1", "vectors": False,
        "count": 1, "text_version": 2,
    }  # fmt: skip
    assert (row["text"], row["user_id"], row["metadata"]) == ("tea", "ana", {"n": 1})
    assert end == {"format": "gcmem-chunks", "end": True, "count": 1, "digest": done.digest}


def test_an_export_is_limited_to_a_scope_and_replaces_the_file(
    memory: Memory, store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_text("something else")
    memory.add("one", user_id="ana")
    memory.add("two", user_id="bob")
    done = export_file(memory.store, file, where=ChunkFilter(scope=Scope(user_id="bob")))
    assert done.chunks == 1
    assert gzip.decompress(file.read_bytes()).count(b"\n") == 3
    import_file(file, store, encoder=ENCODER)
    assert [chunk.text for chunk in chunks_in(store)] == ["two"]


def test_an_export_into_a_folder_that_is_not_there_says_so(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="can't write"):
        export_file(memory.store, tmp_path / "no" / "a.jsonl")


def test_an_export_that_was_stopped_goes_on(memory: Memory, tmp_path: Path) -> None:
    put(memory.store, 2500)
    whole = export_file(memory.store, tmp_path / "whole.jsonl.gz", vectors=True)
    file = tmp_path / "a.jsonl.gz"

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    for kept in (1000, 2000):
        with pytest.raises(KeyboardInterrupt):
            export_file(memory.store, file, vectors=True, progress=stop)
        assert not file.exists()
        with (tmp_path / "a.jsonl.gz.part").open("ab") as part:
            part.write(b"half a batch")
        assert json.loads((tmp_path / "a.jsonl.gz.part.json").read_text())["rows"] == kept
    done = export_file(memory.store, file, vectors=True)
    assert (done.resumed_from, done.chunks, done.digest) == (2000, 2500, whole.digest)
    assert gzip.decompress(file.read_bytes()) == gzip.decompress(
        (tmp_path / "whole.jsonl.gz").read_bytes()
    )


def test_another_export_to_the_same_file_begins_anew(memory: Memory, tmp_path: Path) -> None:
    put(memory.store, 1500)
    file = tmp_path / "a.jsonl"

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_file(memory.store, file, vectors=True, progress=stop)
    assert export_file(memory.store, file).resumed_from == 0


def test_rows_without_a_header_are_imported(store: Store, tmp_path: Path) -> None:
    file = write(
        tmp_path / "rows.jsonl",
        {"text": "tea", "at": "2026-01-01T10:00:00Z"},
        {"text": "coffee", "at": "2026-01-02T10:00:00+02:00", "user_id": "ana", "agent_id": "a",
         "run_id": "r", "speaker": "assistant", "session": "s", "metadata": {"n": [1]},
         "id": 7, "recorded_at": "2026-01-03T00:00:00Z", "unknown": 1},
        "",
        {"text": "tea", "at": "2026-01-01T10:00:00Z"},
    )  # fmt: skip
    moved = import_file(file, store, encoder=ENCODER, now=NOW)
    tea, coffee = chunks_in(store)
    assert (tea.text, tea.at, tea.recorded_at) == ("tea", datetime(2026, 1, 1, 10, tzinfo=UTC), NOW)
    assert coffee == Chunk(
        id="7", text="coffee", at=datetime(2026, 1, 2, 8, tzinfo=UTC), seq=2,
        recorded_at=datetime(2026, 1, 3, tzinfo=UTC), speaker="assistant", session="s",
        scope=Scope(user_id="ana", agent_id="a", run_id="r"), metadata={"n": [1]},
    )  # fmt: skip
    assert (moved.copied.added, moved.copied.present) == (2, 1)  # a row said twice is one chunk
    again = import_file(file, store, encoder=ENCODER, now=NOW + timedelta(days=1))
    assert again.copied.added == 0
    assert again.verified is not None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{not json", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"text": "\\ud800", "at": "2026-01-01T00:00:00Z"}', "surrogate"),
        ({"text": "", "at": "2026-01-01T00:00:00Z"}, "empty"),
        ({"content": "tea", "at": "2026-01-01T00:00:00Z"}, "gcmem add --file"),
        ({"text": "tea"}, "no event time"),
        ({"text": "tea", "at": "yesterday"}, "can't read the time"),
        ({"text": "tea", "at": "2026-01-01T00:00:00"}, "no timezone"),
        ({"text": "tea", "at": "2999-01-01T00:00:00Z"}, "max_future"),
        ({"text": "tea", "at": "2026-01-01T00:00:00Z", "user_id": 3}, "user_id"),
        ({"text": "tea", "at": "2026-01-01T00:00:00Z", "metadata": [1]}, "metadata"),
        ({"text": "tea", "at": "2026-01-01T00:00:00Z", "metadata": {"n": float("nan")}}, "JSON"),
    ],
)
def test_a_bad_row_is_named_by_its_line_and_can_be_left_out(
    store: Store, tmp_path: Path, row: Any, reason: str
) -> None:
    good = [{"text": f"t{n}", "at": "2026-01-01T00:00:00Z"} for n in range(1500)]
    file = write(tmp_path / "rows.jsonl", *good, row, {"text": "end", "at": "2026-01-02T00:00:00Z"})
    with pytest.raises(BadRowError, match=reason) as caught:
        import_file(file, store, encoder=ENCODER, now=NOW)
    assert caught.value.line == 1501
    assert store.log.count(ChunkFilter()) == 1000  # whole batches only
    moved = import_file(file, store, encoder=ENCODER, now=NOW, skip_bad=True)
    assert (moved.copied.added, moved.copied.bad) == (501, 1)
    assert [bad.line for bad in moved.copied.bad_rows] == [1501]
    assert [c.text for c in chunks_in(store)] == [*(f"t{n}" for n in range(1500)), "end"]


def test_times_without_an_offset_need_a_timezone(store: Store, tmp_path: Path) -> None:
    file = write(tmp_path / "rows.jsonl", {"text": "tea", "at": "2026-01-01T12:00:00"})
    import_file(file, store, encoder=ENCODER, now=NOW, tz=ZoneInfo("Europe/Rome"))
    assert chunks_in(store)[0].at == datetime(2026, 1, 1, 11, tzinfo=UTC)


@pytest.mark.parametrize("field", ["id", "text", "at", "recorded_at", "speaker"])
def test_an_own_row_without_a_field_is_bad(
    memory: Memory, store: Store, tmp_path: Path, field: str
) -> None:
    memory.add("tea")
    file = tmp_path / "a.jsonl"
    export_file(memory.store, file)
    header, row, end = map(json.loads, file.read_text("utf-8").splitlines())
    write(file, header, {k: v for k, v in row.items() if k != field}, end)
    with pytest.raises(BadRowError, match=field):
        import_file(file, store, encoder=ENCODER)


def test_a_file_that_is_cut_off_or_changed_is_told(
    memory: Memory, store: Store, tmp_path: Path
) -> None:
    memory.add(["one", "two"], at=day(1))
    file = tmp_path / "a.jsonl"
    export_file(memory.store, file)
    lines = file.read_text("utf-8").splitlines()
    for content, said in (
        (lines[:-1], "cut off"),
        ([lines[0], *lines[2:]], "damaged: it has 1 rows, but should have 2"),
        ([*lines, lines[1]], "after the end"),
        ([lines[0], lines[0]], "second header"),
        ([lines[0].replace('"version":1', '"version":2')], "upgrade"),
        ([""], "empty"),
    ):
        with pytest.raises(TransferFormatError, match=said):
            import_file(write(tmp_path / "b.jsonl", *content), store, encoder=ENCODER)
    changed = write(tmp_path / "b.jsonl", *(line.replace('"two"', '"ten"') for line in lines))
    with pytest.raises(VerificationError, match="damaged"):
        import_file(changed, store, encoder=ENCODER)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.parquet"])
def test_a_packed_file_that_is_cut_off_is_told(
    memory: Memory, store: Store, tmp_path: Path, name: str
) -> None:
    memory.add([f"fact {n}" for n in range(50)], at=day(1))
    file = tmp_path / name
    export_file(memory.store, file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(TransferFormatError, match="cut off"):
        import_file(file, store, encoder=ENCODER)
    with pytest.raises(TransferFormatError, match="can't read"):
        import_file(tmp_path / "none", store, encoder=ENCODER)


def test_parquet_of_others_is_read_too(store: Store, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"text": ["tea"], "at": [NOW], "metadata": [{"n": 1}]})
    pq.write_table(table, tmp_path / "rows.parquet")
    import_file(tmp_path / "rows.parquet", store, encoder=ENCODER, now=NOW)
    (chunk,) = chunks_in(store)
    assert (chunk.text, chunk.at, chunk.metadata) == ("tea", NOW, {"n": 1})


def test_parquet_without_pyarrow_names_the_extra(
    memory: Memory, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("tea")
    file = tmp_path / "a.parquet"
    export_file(memory.store, file)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="parquet"):
        import_file(file, store, encoder=ENCODER)
    with pytest.raises(MissingExtraError, match="parquet"):
        export_file(memory.store, tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet.part").exists()


def test_vectors_of_another_encoder_are_computed_anew(
    memory: Memory, tmp_path: Path, store: Store
) -> None:
    memory.add("tea")
    file = tmp_path / "a.jsonl"
    export_file(memory.store, file, vectors=True)
    other = HashEncoder(name="other")
    fresh = open_embedded(":memory:", encoder=other, stm_size=5)
    assert import_file(file, fresh, encoder=other).copied.embedded == 1
    with pytest.raises(EncoderMismatchError):
        import_file(file, fresh, encoder=ENCODER)
    fresh.close()


def test_what_is_there_with_another_text_fails_the_verification(
    memory: Memory, store: Store, tmp_path: Path
) -> None:
    put(memory.store, 3)
    file = tmp_path / "a.jsonl"
    export_file(memory.store, file)
    other = Chunk(id="c1", text="something else", at=day(1), recorded_at=day(1))
    store.append([other], ENCODER.encode([other.text]), encoder_id=ENCODER.id)
    with pytest.raises(VerificationError, match=r"chunk c1.* differs in text") as caught:
        import_file(file, store, encoder=ENCODER)
    assert len(caught.value.differences) == 1
    assert import_file(file, store, encoder=ENCODER, check=False).verified is None
    store.delete(["c2"])
    with pytest.raises(VerificationError, match=r"has 3 chunks .* has 2 of .* c2 .*missing"):
        verify(JsonlFile(file), store.log)


def test_migrate_copies_everything_once_in_order(memory: Memory, store: Store) -> None:
    put(memory.store, 1200)
    memory.store.delete(["c7"])
    moved = migrate(memory.store, store, encoder=ENCODER)
    assert (moved.copied.added, moved.copied.embedded, moved.copied.merged) == (1199, 0, False)
    assert moved.verified is not None
    assert moved.verified.in_order
    assert [replace(c, seq=0) for c in chunks_in(store)] == [
        replace(c, seq=0) for c in chunks_in(memory.store)
    ]
    assert migrate(memory.store, store, encoder=ENCODER).copied.added == 0
    with pytest.raises(InvalidInputError, match="both"):
        migrate(store, store, encoder=ENCODER)


def test_an_import_that_was_stopped_goes_on_as_a_plain_copy(
    memory: Memory, store: Store, tmp_path: Path
) -> None:
    put(memory.store, 2500)

    def stop(done: int, total: int) -> None:
        assert total == 2500
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(memory.store, store, encoder=ENCODER, progress=stop)
    moved = migrate(memory.store, store, encoder=ENCODER)
    assert (moved.copied.added, moved.copied.present, moved.copied.merged) == (1500, 1000, False)
    assert not any(ORIGIN_KEY in chunk.metadata for chunk in chunks_in(store))


def test_history_merged_into_a_used_store_is_marked_and_never_taken_for_skew(
    memory: Memory, tmp_path: Path
) -> None:
    old = open_embedded(":memory:", encoder=ENCODER, stm_size=5)
    put(old, 3, first_day=0, name="port")
    memory.add("port=9", at=day(20))  # recorded NOW, stored before what was recorded long ago
    file = tmp_path / "old.jsonl"
    export_file(old, file)
    moved = import_file(file, memory.store, encoder=ENCODER)
    assert moved.copied.merged
    assert moved.verified is not None
    assert {c.metadata.get(ORIGIN_KEY) for c in chunks_in(memory.store)} == {None, "port0"}
    found = memory.search("port")
    assert [item.chunk.text for item in found.kept] == ["port=9"]
    assert found.skewed == ()
    old.close()


def test_skew_between_writers_survives_a_move(tmp_path: Path, store: Store) -> None:
    before = open_embedded(":memory:", encoder=ENCODER, stm_size=5)
    for text, at in (("port=1", day(1) + timedelta(hours=1)), ("port=2", day(1))):
        chunk = Chunk(id=text, text=text, at=at, recorded_at=at)
        before.append([chunk], ENCODER.encode([text]), encoder_id=ENCODER.id)
    migrate(before, store, encoder=ENCODER)
    before.close()
    memory = Memory(
        store=store, encoder=ENCODER, oracle=RuleOracle(same_slot), require_qualified=False
    )
    assert [skew.disagreement_s for skew in memory.search("port").skewed] == [3600]


def test_a_row_that_is_dated_ahead_is_not_imported(tmp_path: Path, store: Store) -> None:
    soon = {"text": "tea", "at": (NOW + timedelta(minutes=4)).isoformat()}
    ahead = {"text": "coffee", "at": (NOW + timedelta(hours=1)).isoformat()}
    file = write(tmp_path / "rows.jsonl", soon, ahead)
    with pytest.raises(BadRowError, match="line 2: event time"):
        import_file(file, store, encoder=ENCODER, now=NOW)
    assert import_file(file, store, encoder=ENCODER, now=NOW, skip_bad=True).copied.added == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_what_is_forgotten_while_an_export_is_stopped_is_not_in_the_file(
    memory: Memory, tmp_path: Path, name: str
) -> None:
    secrets = memory.add([f"secret {n}" for n in range(1990)], user_id="ana")
    memory.add([f"fact {n}" for n in range(300)], user_id="bo")
    file = tmp_path / name

    def stop(done: int, total: int) -> None:
        if done >= 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_file(memory.store, file, vectors=True, progress=stop)
    assert memory.forget(user_id="ana") == len(secrets)
    assert export_file(memory.store, file, vectors=True).chunks == 300
    check_only_facts(file, tmp_path / "new.db")
    assert [path.name for path in tmp_path.glob(f"{name}*")] == [name]


def test_what_is_forgotten_while_an_export_runs_is_not_in_the_file(
    memory: Memory, tmp_path: Path
) -> None:
    memory.add([f"secret {n}" for n in range(1000)], user_id="ana")
    memory.add([f"fact {n}" for n in range(300)], user_id="bo")

    def forget(done: int, total: int) -> None:
        memory.forget(user_id="ana")

    assert export_file(memory.store, tmp_path / "a.jsonl", progress=forget).chunks == 300
    assert b"secret" not in (tmp_path / "a.jsonl").read_bytes()
    check_only_facts(tmp_path / "a.jsonl", tmp_path / "new.db")


def check_only_facts(file: Path, path: Path) -> None:
    """Imports the file, which proves that its count and digest are right."""
    with Memory(path, encoder=HashEncoder()) as new:
        moved = import_file(file, new.store, encoder=new.encoder)
        assert moved.verified is not None
        assert {chunk.text.split()[0] for chunk in new.get_all()} == {"fact"}
