"""What every store must do. Subclass StoreSuite, return a fresh store, and run it with pytest:

class TestMyStore(StoreSuite):
    def make_store(self, tmp_path, encoder):
        return my_store(tmp_path)
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gcmem.errors import EncoderMismatchError, InvalidInputError
from gcmem.protocols import Encoder, Store
from gcmem.testing.fakes import HashEncoder
from gcmem.types import Chunk, ChunkFilter, Conflict, Scope

START = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = ChunkFilter()


def chunk(
    text: str, *, day: float = 0, recorded_day: float = 0, user: str | None = None, **fields: Any
) -> Chunk:
    """Returns an unsaved chunk, its times counted in days from the suite's start."""
    return Chunk(
        id=str(uuid.uuid4()),
        text=text,
        at=START + timedelta(days=day),
        recorded_at=START + timedelta(days=recorded_day),
        scope=fields.pop("scope", Scope(user_id=user)),
        **fields,
    )


class StoreSuite(ABC):
    """The laws of a store: the log is the truth, index and buffer agree with it."""

    encoder: Encoder = HashEncoder()

    @abstractmethod
    def make_store(self, tmp_path: Path, encoder: Encoder) -> Store:
        """Returns a fresh, empty store whose buffer holds 5 chunks."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Any:
        """A fresh store, closed afterwards."""
        store = self.make_store(tmp_path, self.encoder)
        yield store
        store.close()

    def put(self, store: Store, *chunks: Chunk) -> tuple[Chunk, ...]:
        """Appends chunks and tells the buffer."""
        vectors = self.encoder.encode([c.text for c in chunks])
        stored = store.log.append(chunks, vectors, encoder_id=self.encoder.id)
        store.buffer.push(stored)
        return stored

    def found(self, store: Store, query: str, where: ChunkFilter = EVERYTHING) -> list[str]:
        """Returns the texts that the index finds, best first."""
        hits = store.index.search(self.encoder.encode([query]), k=100, where=where)[0]
        chunks = store.log.get([chunk_id for chunk_id, _ in hits])
        return [chunks[chunk_id].text for chunk_id, _ in hits]

    def test_append_returns_rising_sequence_numbers(self, store: Store) -> None:
        """Sequence numbers rise in the order of the call."""
        seqs = [
            c.seq for c in self.put(store, chunk("a"), chunk("b")) + self.put(store, chunk("c"))
        ]
        assert None not in seqs
        assert seqs == sorted(set(seqs), key=lambda seq: seq or 0)

    def test_a_chunk_comes_back_as_it_went_in(self, store: Store) -> None:
        """Every field survives, to the microsecond and in any script."""
        before = chunk(
            "naïve 漢字 🦉 עברית\nnew line",
            day=1.000001,
            scope=Scope(user_id="ü", agent_id="a", run_id="r"),
            speaker="assistant",
            session="s",
            metadata={"n": 1, "f": 1.5, "t": True, "none": None, "list": [1, {"x": "y"}]},
            trust=0,
        )
        (stored,) = self.put(store, before)
        assert stored == replace(before, seq=stored.seq)
        assert store.log.get([before.id]) == {before.id: stored}

    def test_unknown_ids_are_left_out(self, store: Store) -> None:
        """get returns only what exists."""
        assert store.log.get(["no such id"]) == {}

    def test_an_id_is_stored_once_and_a_failed_batch_leaves_nothing(self, store: Store) -> None:
        """All chunks of a batch are stored, or none."""
        (stored,) = self.put(store, chunk("a"))
        with pytest.raises(InvalidInputError):
            self.put(store, chunk("b"), replace(stored, seq=None))
        assert store.log.count(EVERYTHING) == 1

    def test_another_encoder_is_refused(self, store: Store) -> None:
        """Vectors of two encoders never mix."""
        self.put(store, chunk("a"))
        other = HashEncoder(name="other")
        with pytest.raises(EncoderMismatchError):
            store.log.append([chunk("b")], other.encode(["b"]), encoder_id=other.id)
        assert store.log.count(EVERYTHING) == 1

    def test_scan_orders_by_log_or_by_event_time(self, store: Store) -> None:
        """A late arrival is last in the log and in its place in time."""
        self.put(store, chunk("second", day=2), chunk("third", day=3), chunk("first", day=1))
        assert [c.text for c in store.log.scan(EVERYTHING)] == ["second", "third", "first"]
        by_time = [c.text for c in store.log.scan(EVERYTHING, by_time=True)]
        assert by_time == ["first", "second", "third"]
        newest = store.log.scan(EVERYTHING, by_time=True, newest_first=True, limit=2)
        assert [c.text for c in newest] == ["third", "second"]

    def test_scan_pages_through_many_chunks_without_gaps(self, store: Store) -> None:
        """Paging loses and repeats nothing, also where event times are equal."""
        self.put(store, *(chunk(f"n{n}", day=n % 3) for n in range(2500)))
        assert [c.text for c in store.log.scan(EVERYTHING)] == [f"n{n}" for n in range(2500)]
        assert len({c.id for c in store.log.scan(EVERYTHING, by_time=True)}) == 2500
        first = list(store.log.scan(EVERYTHING, limit=1500))
        rest = list(store.log.scan(EVERYTHING, after_seq=first[-1].seq or 0))
        assert len(first) + len(rest) == 2500

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (ChunkFilter(scope=Scope(user_id="ana")), ["tea one", "tea two"]),
            (ChunkFilter(scope=Scope(user_id="ana", run_id="r")), ["tea two"]),
            (ChunkFilter(scope=Scope(user_id="nobody")), []),
            (ChunkFilter(as_of=START + timedelta(days=2)), ["tea one", "tea two"]),
            (ChunkFilter(after=START + timedelta(days=2)), ["tea three"]),
            (ChunkFilter(known_at=START), ["tea one", "tea three"]),
            (ChunkFilter(metadata=(("kind", "x"),)), ["tea one"]),
            (ChunkFilter(metadata=(("kind", ("x", "y")),)), ["tea one", "tea three"]),
            (ChunkFilter(metadata=(("n", 1),)), ["tea one"]),
            (ChunkFilter(metadata=(("n", True),)), ["tea two"]),
            (ChunkFilter(metadata=(("missing", None),)), []),
        ],
    )
    def test_log_index_and_buffer_agree_on_filters(
        self, store: Store, where: ChunkFilter, expected: Sequence[str]
    ) -> None:
        """Scope, both times and metadata mean the same everywhere."""
        self.put(
            store,
            chunk("tea one", day=1, user="ana", metadata={"kind": "x", "n": 1}),
            chunk(
                "tea two",
                day=2,
                recorded_day=1,
                scope=Scope(user_id="ana", run_id="r"),
                metadata={"n": True},
            ),
            chunk("tea three", day=3, user="bob", metadata={"kind": "y", "n": "1"}),
        )
        assert [c.text for c in store.log.scan(where)] == expected
        assert store.log.count(where) == len(expected)
        assert sorted(self.found(store, "tea", where)) == sorted(expected)
        assert sorted(c.text for c in store.buffer.recent(where)) == sorted(expected)

    def test_index_ranks_by_similarity_and_cuts_at_k(self, store: Store) -> None:
        """The nearest come first, with their cosine."""
        self.put(store, chunk("red apple pie"), chunk("green pear"), chunk("apple pie"))
        query = self.encoder.encode(["apple pie"])
        (hits,) = store.index.search(query, k=2, where=EVERYTHING)
        texts = [store.log.get([chunk_id])[chunk_id].text for chunk_id, _ in hits]
        assert texts == ["apple pie", "red apple pie"]
        assert hits[0][1] == pytest.approx(1.0, abs=1e-5)
        assert store.index.score(query, [hits[1][0]])[0, 0] == pytest.approx(hits[1][1], abs=1e-5)

    def test_index_finds_the_frontier_of_time_and_similarity(self, store: Store) -> None:
        """Behind the k most similar come those that fewer newer chunks match, newest first."""
        old = [chunk(f"ana eats meat {n}", day=n) for n in range(20)]
        self.put(store, *old, chunk("ana eats tofu", day=30), chunk("rain", day=31))
        query = self.encoder.encode(["ana eats meat"])
        (hits,) = store.index.search(query, k=2, where=EVERYTHING, frontier=1)
        chunks = store.log.get([chunk_id for chunk_id, _ in hits])
        texts = [chunks[chunk_id].text for chunk_id, _ in hits]
        assert "ana eats tofu" in texts[2:]
        times = [chunks[chunk_id].at for chunk_id, _ in hits[2:]]
        assert times == sorted(times, reverse=True)  # type: ignore[type-var]

    def test_verdicts_and_edges_are_kept(self, store: Store) -> None:
        """What an oracle said can be asked again, by that oracle and for that question."""
        if store.verdicts is None:
            return
        a, b = self.put(store, chunk("a"), chunk("b", day=1))
        store.verdicts.put("oracle@1", "Where?", {(a.id, b.id): 0.75})
        assert store.verdicts.get("oracle@1", "where?", [(a.id, b.id)]) == {(a.id, b.id): 0.75}
        assert store.verdicts.get("oracle@2", "Where?", [(a.id, b.id)]) == {}
        edge = Conflict(older=a.id, newer=b.id, score=0.75, oracle="oracle@1")
        store.verdicts.link([edge])
        store.verdicts.set_linked_up_to("oracle@1", b.seq or 0)
        assert store.verdicts.witnesses("oracle@1", [a.id, b.id]) == {a.id: [b.id]}
        assert store.verdicts.linked_up_to("oracle@1") == b.seq
        assert store.verdicts.linked_up_to("oracle@2") == 0

    def test_index_sees_what_was_added_and_erased_after_a_search(self, store: Store) -> None:
        """The index never lags behind the log."""
        first, second = self.put(store, chunk("tea one"), chunk("tea two"))
        assert sorted(self.found(store, "tea")) == ["tea one", "tea two"]
        self.put(store, chunk("tea three"))
        assert store.log.delete([first.id, "no such id"]) == 1
        assert sorted(self.found(store, "tea")) == ["tea three", "tea two"]
        assert store.log.get([first.id, second.id]).keys() == {second.id}

    def test_sequence_numbers_are_not_used_again(self, store: Store) -> None:
        """What was erased leaves its number behind."""
        (first,) = self.put(store, chunk("a"))
        store.log.delete([first.id])
        (second,) = self.put(store, chunk("b"))
        assert (second.seq or 0) > (first.seq or 0)

    def test_buffer_keeps_the_newest_by_event_time(self, store: Store) -> None:
        """A late arrival never pushes out what is newer than it."""
        self.put(store, *(chunk(f"n{n}", day=n) for n in range(1, 8)))
        self.put(store, chunk("late", day=0))
        recent = [c.text for c in store.buffer.recent(EVERYTHING)]
        assert recent == ["n7", "n6", "n5", "n4", "n3"]

    def test_index_and_buffer_rebuild_from_the_log(self, store: Store) -> None:
        """Nothing is lost with them."""
        self.put(store, *(chunk(f"tea {n}", day=n) for n in range(4)))
        found, recent = self.found(store, "tea"), store.buffer.recent(EVERYTHING)
        store.index.rebuild()
        store.buffer.rebuild()
        assert self.found(store, "tea") == found
        assert store.buffer.recent(EVERYTHING) == recent

    def test_reindex_swaps_the_vectors_and_reports_progress(self, store: Store) -> None:
        """Every chunk is embedded anew, none is lost."""
        self.put(store, *(chunk(f"tea {n}") for n in range(300)))
        seen: list[tuple[int, int]] = []
        other = HashEncoder(name="other")
        assert store.log.reindex(other, progress=lambda d, t: seen.append((d, t))) == 300
        assert store.log.encoder_id == other.id
        assert seen[0] == (0, 300)
        assert store.log.count(EVERYTHING) == 300
