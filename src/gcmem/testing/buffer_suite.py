"""What every recency buffer must do."""

from __future__ import annotations

from gcmem.protocols import Store
from gcmem.testing.store_harness import EVERYTHING, StoreHarness, chunk, texts
from gcmem.types import ChunkFilter, Scope


class BufferSuite(StoreHarness):
    """Requirements on a buffer: it returns the log's newest chunks by event time."""

    def test_buffer_keeps_the_newest_by_event_time(self, store: Store) -> None:
        """A chunk that arrives late never pushes out a newer one."""
        assert store.buffer.capacity == 5
        assert store.buffer.recent(EVERYTHING) == ()
        self.put(store, *(chunk(f"n{n}", day=n) for n in range(1, 8)))
        self.put(store, chunk("late", day=0))
        recent = texts(store.buffer.recent(EVERYTHING))
        assert recent == ["n7", "n6", "n5", "n4", "n3"]

    def test_a_busy_scope_pushes_nothing_out_of_another(self, store: Store) -> None:
        """Every scope has room for its own newest chunks."""
        self.put(store, *(chunk(f"ana {n}", day=n, user="ana") for n in range(3)))
        self.put(store, *(chunk(f"bob {n}", day=10 + n, user="bob") for n in range(20)))
        ana = store.buffer.recent(ChunkFilter(scope=Scope(user_id="ana")))
        assert texts(ana) == ["ana 2", "ana 1", "ana 0"]
        bob = store.buffer.recent(ChunkFilter(scope=Scope(user_id="bob")))
        assert texts(bob) == [f"bob {n}" for n in range(19, 14, -1)]

    def test_buffer_forgets_what_the_log_erased(self, store: Store) -> None:
        """An erased chunk disappears, and an older one takes its place."""
        stored = self.put(store, *(chunk(f"n{n}", day=n) for n in range(6)))
        assert texts(store.buffer.recent(EVERYTHING))[0] == "n5"
        store.delete([stored[5].id])
        assert texts(store.buffer.recent(EVERYTHING)) == ["n4", "n3", "n2", "n1", "n0"]

    def test_buffer_has_what_another_instance_pushed(self, store: Store, other: Store) -> None:
        """Several processes share one short-term memory."""
        self.put(store, chunk("mine", day=1))
        self.put(other, chunk("theirs", day=2))
        assert texts(store.buffer.recent(EVERYTHING)) == ["theirs", "mine"]
        assert texts(other.buffer.recent(EVERYTHING)) == ["theirs", "mine"]

    def test_buffer_rebuilds_from_the_log(self, store: Store) -> None:
        """After a rebuild, the buffer returns the same chunks."""
        self.put(store, *(chunk(f"tea {n}", day=n) for n in range(4)))
        recent = store.buffer.recent(EVERYTHING)
        store.buffer.rebuild()
        assert store.buffer.recent(EVERYTHING) == recent
        assert len(recent) == 4
