"""What every log must do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from gcmem.errors import EncoderMismatchError, InvalidInputError
from gcmem.protocols import ScoreKey, Store
from gcmem.testing.fakes import HashEncoder
from gcmem.testing.store_harness import EVERYTHING, START, StoreHarness, chunk, texts
from gcmem.types import ChunkFilter, Scope

AWKWARD = (
    "naïve 漢字 🦉 עברית\nnew line",
    "👩‍👩‍👧‍👦 family, ñ composed and n\u0303 not",
    "tab\there, return\r\n, bell\x07, \u2028 separator, \ufeff mark",
    "'; DROP TABLE chunks; -- \" ` $1 %s %(x)s {0} \\N \\. \\x41",
    "  spaces kept  ",
    "𝒳 \U0010ffff \ue000",
)


class LogSuite(StoreHarness):
    """Requirements on a log: it keeps acknowledged chunks, complete and in order, until erased."""

    def test_append_returns_rising_sequence_numbers(self, store: Store) -> None:
        """Sequence numbers are at least 1 and rise in the order of the call."""
        stored = self.put(store, chunk("a"), chunk("b")) + self.put(store, chunk("c"))
        seqs = [c.seq or 0 for c in stored]
        assert seqs == sorted(set(seqs))
        assert seqs[0] > 0

    def test_nothing_appended_is_nothing_stored(self, store: Store) -> None:
        """An empty batch is fine."""
        empty = self.encoder.encode([])
        assert store.append([], empty, encoder_id=self.encoder.id) == ()
        assert store.log.count(EVERYTHING) == 0
        assert list(store.log.scan(EVERYTHING)) == []

    @pytest.mark.parametrize("text", AWKWARD)
    def test_a_chunk_comes_back_as_it_went_in(self, store: Store, text: str) -> None:
        """Every field survives, to the microsecond and in any script."""
        before = chunk(
            text,
            day=1.000001,
            scope=Scope(user_id=text, agent_id="a", run_id="r"),
            speaker=text,
            session=text,
            trust=0,
            metadata={"n": 1, "f": 1.5, "t": True, "none": None, text: [1, {"x": text}]},
        )
        (stored,) = self.put(store, before)
        assert stored == replace(before, seq=stored.seq)
        assert store.log.get([before.id]) == {before.id: stored}
        assert list(store.log.scan(ChunkFilter(scope=Scope(user_id=text)))) == [stored]
        named = (("label", text),)
        store.log.set_metadata(before.id, dict(named))
        assert texts(store.log.scan(ChunkFilter(metadata=named))) == [text]

    def test_numbers_in_metadata_keep_their_kind(self, store: Store) -> None:
        """A float stays a float and a large integer keeps every digit."""
        numbers = [1.0, 1e16, -0.0, 1e-300, 2**62, 10**30, 0.1]
        (stored,) = self.put(store, chunk("a", metadata={"numbers": numbers}))
        kept = store.log.get([stored.id])[stored.id].metadata["numbers"]
        assert list(map(repr, kept)) == list(map(repr, numbers))

    def test_any_time_of_the_calendar_is_kept(self, store: Store) -> None:
        """Times are exact from the first year to the last."""
        times = [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ]
        self.put(store, *(replace(chunk("x"), at=at, recorded_at=at) for at in reversed(times)))
        kept = list(store.log.scan(EVERYTHING, by_time=True))
        assert [c.at for c in kept] == times
        assert [c.recorded_at for c in kept] == times

    def test_unknown_ids_are_left_out(self, store: Store) -> None:
        """get returns only what exists."""
        assert store.log.get([]) == {}
        assert store.log.get(["no such id"]) == {}

    def test_an_id_is_stored_once_and_a_failed_batch_leaves_nothing(self, store: Store) -> None:
        """All chunks of a batch are stored, or none."""
        (stored,) = self.put(store, chunk("a"))
        with pytest.raises(InvalidInputError):
            self.put(store, chunk("b"), replace(stored, seq=None))
        twin = chunk("c")
        with pytest.raises(InvalidInputError):
            self.put(store, twin, twin)
        assert list(store.log.scan(EVERYTHING)) == [stored]
        assert self.found(store, "b") == ["a"]

    def test_another_encoder_is_refused(self, store: Store) -> None:
        """Vectors of two encoders never mix."""
        self.put(store, chunk("a"))
        other = HashEncoder(name="other")
        with pytest.raises(EncoderMismatchError):
            store.append([chunk("b")], other.encode(["b"]), encoder_id=other.id)
        assert store.log.count(EVERYTHING) == 1

    def test_scan_orders_by_log_or_by_event_time(self, store: Store) -> None:
        """A late chunk is last in log order and in its place by time; log order breaks ties."""
        days = {"second": 2, "third": 3, "first": 1, "third too": 3}
        self.put(store, *(chunk(text, day=day) for text, day in days.items()))
        assert texts(store.log.scan(EVERYTHING)) == list(days)
        assert texts(store.log.scan(EVERYTHING, newest_first=True)) == list(days)[::-1]
        by_time = ["first", "second", "third", "third too"]
        assert texts(store.log.scan(EVERYTHING, by_time=True)) == by_time
        newest = store.log.scan(EVERYTHING, by_time=True, newest_first=True, limit=2)
        assert texts(newest) == ["third too", "third"]

    def test_scan_pages_through_many_chunks_without_gaps(self, store: Store) -> None:
        """Paging loses and repeats nothing, even if event times are equal."""
        self.put(store, *(chunk(f"n{n}", day=n % 3) for n in range(2500)))
        assert texts(store.log.scan(EVERYTHING)) == [f"n{n}" for n in range(2500)]
        assert len({c.id for c in store.log.scan(EVERYTHING, by_time=True)}) == 2500
        first = list(store.log.scan(EVERYTHING, limit=1500))
        rest = list(store.log.scan(EVERYTHING, after_seq=first[-1].seq or 0))
        assert len(first) + len(rest) == 2500

    def test_after_seq_and_limit_page_through_a_filter(self, store: Store) -> None:
        """Passing the last sequence number returns the next page of matching chunks."""
        self.put(store, *(chunk(f"n{n}", user="ana" if n % 3 else "bob") for n in range(60)))
        where = ChunkFilter(scope=Scope(user_id="ana"))
        seen: list[str] = []
        last = 0
        while page := list(store.log.scan(where, after_seq=last, limit=7)):
            assert len(page) == min(7, 40 - len(seen))
            seen += texts(page)
            last = page[-1].seq or 0
        assert seen == [f"n{n}" for n in range(60) if n % 3]
        assert list(store.log.scan(where, limit=0)) == []
        newest = store.log.scan(where, after_seq=last - 3, by_time=True, newest_first=True)
        assert all((c.seq or 0) > last - 3 for c in newest)

    def test_a_batch_of_ten_thousand_is_one_append(self, store: Store) -> None:
        """A large batch is stored completely and in order, and can be found."""
        stored = self.put(store, *(chunk(f"word{n} tea", day=n / 1000) for n in range(10_000)))
        assert [c.seq for c in stored] == sorted(c.seq or 0 for c in stored)
        assert store.log.count(EVERYTHING) == 10_000
        assert len(store.log.get([c.id for c in stored])) == 10_000
        assert [c.id for c in store.log.scan(EVERYTHING)] == [c.id for c in stored]
        hits = store.index.search(self.encoder.encode(["word77 tea"]), k=1000, where=EVERYTHING)
        assert stored[77].id in {chunk_id for chunk_id, _ in hits[0]}

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (ChunkFilter(scope=Scope(user_id="ana")), ["tea one", "tea two"]),
            (ChunkFilter(scope=Scope(user_id="ana", run_id="r")), ["tea two"]),
            (ChunkFilter(scope=Scope(run_id="r")), ["tea two"]),
            (ChunkFilter(scope=Scope(agent_id="bot")), ["tea three"]),
            (ChunkFilter(scope=Scope(user_id="nobody")), []),
            (ChunkFilter(scope=Scope(user_id="ANA")), []),
            (ChunkFilter(as_of=START + timedelta(days=2)), ["tea one", "tea two"]),
            (ChunkFilter(as_of=START), []),
            (ChunkFilter(after=START + timedelta(days=2)), ["tea three"]),
            (
                ChunkFilter(after=START + timedelta(days=1), as_of=START + timedelta(days=2)),
                ["tea two"],
            ),
            (ChunkFilter(known_at=START), ["tea one", "tea three"]),
            (
                ChunkFilter(as_of=START + timedelta(days=2), known_at=START),
                ["tea one"],
            ),
            (ChunkFilter(metadata=(("kind", "x"),)), ["tea one"]),
            (ChunkFilter(metadata=(("kind", ("x", "y")),)), ["tea one", "tea three"]),
            (ChunkFilter(metadata=(("kind", ("x", "y")), ("n", 1))), ["tea one"]),
            (ChunkFilter(metadata=(("n", 1),)), ["tea one"]),
            (ChunkFilter(metadata=(("n", 1.0),)), ["tea one"]),
            (ChunkFilter(metadata=(("n", True),)), ["tea two"]),
            (ChunkFilter(metadata=(("n", "1"),)), ["tea three"]),
            (ChunkFilter(metadata=(("f", 0.1),)), ["tea two"]),
            (ChunkFilter(metadata=(("f", float("inf")),)), []),
            (ChunkFilter(metadata=(("none", None),)), ["tea one"]),
            (ChunkFilter(metadata=(("list", 1),)), []),
            (ChunkFilter(metadata=(("missing", None),)), []),
            (ChunkFilter(metadata=(("a.b c", "x"),)), ["tea three"]),
            (
                ChunkFilter(scope=Scope(user_id="ana"), metadata=(("kind", ("x", "y")),)),
                ["tea one"],
            ),
        ],
    )
    def test_log_index_and_buffer_agree_on_filters(
        self, store: Store, where: ChunkFilter, expected: Sequence[str]
    ) -> None:
        """Scope, both times and metadata mean the same everywhere."""
        self.put(
            store,
            chunk(
                "tea one",
                day=1,
                user="ana",
                metadata={"kind": "x", "n": 1, "none": None, "list": [1]},
            ),
            chunk(
                "tea two",
                day=2,
                recorded_day=1,
                scope=Scope(user_id="ana", run_id="r"),
                metadata={"n": True, "f": 0.1},
            ),
            chunk(
                "tea three",
                day=3,
                scope=Scope(user_id="bob", agent_id="bot"),
                metadata={"kind": "y", "n": "1", "a.b c": "x"},
            ),
        )
        assert texts(store.log.scan(where)) == expected
        assert store.log.count(where) == len(expected)
        assert sorted(self.found(store, "tea", where)) == sorted(expected)
        assert sorted(texts(store.buffer.recent(where))) == sorted(expected)

    def test_metadata_is_replaced_and_nothing_else(self, store: Store) -> None:
        """Filters follow the new metadata at once, in log, index and buffer."""
        tea, coffee = self.put(
            store,
            chunk("tea", day=1, user="ana", metadata={"tag": "old", "kept": False}),
            chunk("coffee", day=2, metadata={"tag": "old"}),
        )
        assert self.found(store, "tea", ChunkFilter(metadata=(("tag", "new"),))) == []
        updated = store.log.set_metadata(tea.id, {"tag": "new"})
        assert updated == replace(tea, metadata={"tag": "new"})
        assert store.log.get([tea.id, coffee.id]) == {tea.id: updated, coffee.id: coffee}
        for tag, expected in (("new", [updated]), ("old", [coffee])):
            where = ChunkFilter(metadata=(("tag", tag),))
            assert list(store.log.scan(where)) == expected
            assert self.found(store, "tea", where) == texts(expected)
            assert list(store.buffer.recent(where)) == expected
        assert store.log.set_metadata("no such id", {"tag": "new"}) is None
        assert store.log.count(EVERYTHING) == 2

    def test_deleting_erases_what_was_named_and_only_that(self, store: Store) -> None:
        """Unknown and repeated ids are ignored, and a second deletion finds nothing."""
        stored = self.put(store, *(chunk(f"tea {n}", day=n) for n in range(4)))
        gone = [stored[0].id, stored[2].id]
        assert store.delete([]) == 0
        assert store.delete([*gone, gone[0], "no such id"]) == 2
        assert store.delete(gone) == 0
        assert texts(store.log.scan(EVERYTHING)) == ["tea 1", "tea 3"]
        assert store.log.get(gone) == {}
        assert store.log.set_metadata(gone[0], {}) is None

    def test_sequence_numbers_are_not_used_again(self, store: Store) -> None:
        """The number of an erased chunk stays taken."""
        (first,) = self.put(store, chunk("a"))
        store.delete([first.id])
        (second,) = self.put(store, chunk("b"))
        assert (second.seq or 0) > (first.seq or 0)

    def test_everything_is_there_when_opened_again(self, tmp_path: Path) -> None:
        """Closing loses nothing: chunks, metadata, vectors, scores, the last number."""
        if not self.durable:
            return
        first = self.make_store(tmp_path, self.encoder)
        a, b, c = self.put(first, *(chunk(f"tea {n}", day=n) for n in range(3)))
        kept = [a, first.log.set_metadata(b.id, {"tag": "new"})]
        first.delete([c.id])
        key = ScoreKey(scorer="model@1", question="q")
        if first.scores is not None:
            first.scores.put(key, {(a.id, b.id): 0.5})
        first.close()
        again = self.make_store(tmp_path, self.encoder)
        assert again.index.encoder_id == self.encoder.id
        assert list(again.log.scan(EVERYTHING)) == kept
        assert sorted(self.found(again, "tea")) == ["tea 0", "tea 1"]
        assert texts(again.buffer.recent(EVERYTHING)) == ["tea 1", "tea 0"]
        if again.scores is not None:
            assert again.scores.get(key, [(a.id, b.id)]) == {(a.id, b.id): 0.5}
        (d,) = self.put(again, chunk("tea 3"))
        assert (d.seq or 0) > (c.seq or 0)
        again.close()

    def test_the_index_returns_the_vectors_that_were_stored(self, store: Store) -> None:
        """A migration can reuse stored vectors; unknown ids are left out."""
        a, b = self.put(store, chunk("tea"), chunk("coffee"))
        found = store.index.vectors([b.id, a.id, "unknown"])
        assert found.keys() == {a.id, b.id}
        wanted = self.encoder.encode(["tea", "coffee"])
        np.testing.assert_allclose([found[a.id], found[b.id]], wanted, atol=1e-6)
        assert store.index.vectors([]) == {}

    def test_reindex_swaps_the_vectors_and_reports_progress(self, store: Store) -> None:
        """Every chunk is re-embedded and none is lost; searches use the old vectors meanwhile."""
        self.put(store, *(chunk(f"tea {n}") for n in range(300)))
        seen: list[tuple[int, int]] = []
        other = HashEncoder(name="other", dimensions=16)

        def look(done: int, total: int) -> None:
            assert store.index.encoder_id == self.encoder.id
            assert "tea 7" in self.found(store, "tea 7")
            if not seen:
                late = chunk("added meanwhile")
                vector = self.encoder.encode([late.text])
                store.append([late], vector, encoder_id=self.encoder.id)
            seen.append((done, total))

        assert store.index.rebuild(other, progress=look) == 301
        assert store.index.encoder_id == other.id
        assert seen[0] == (0, 300)
        assert store.log.count(EVERYTHING) == 301
        with pytest.raises(EncoderMismatchError):
            self.found(store, "tea")

    def test_a_store_is_searched_with_its_new_encoder(self, tmp_path: Path) -> None:
        """After a reindex the store opens with the new encoder."""
        if not self.durable:
            return
        first = self.make_store(tmp_path, self.encoder)
        self.put(first, *(chunk(f"tea {n}") for n in range(20)))
        other = HashEncoder(name="other", dimensions=16)
        first.index.rebuild(other)
        first.close()
        again = self.make_store(tmp_path, other)
        asked = other.encode(["user: tea 7"])  # as it is embedded
        hits = again.index.search(asked, k=20, where=EVERYTHING)[0]
        assert len(hits) == 20
        assert hits[0][1] == pytest.approx(1.0, abs=1e-5)
        again.close()
