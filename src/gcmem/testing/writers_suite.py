"""What every store must do with several writers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gcmem.protocols import Store
from gcmem.testing.store_harness import EVERYTHING, StoreHarness, chunk
from gcmem.types import Chunk

WRITERS = 4
BATCHES = 15
BATCH = 3


class WritersSuite(StoreHarness):
    """Requirements with many writers: all see the same order, and nothing is lost."""

    def write_from_all(self, instances: list[Store]) -> list[tuple[Chunk, ...]]:
        """Appends from several threads at once, spread over the instances."""

        def write(writer: int) -> list[tuple[Chunk, ...]]:
            store = instances[writer % len(instances)]
            return [
                self.put(store, *(chunk(f"w{writer} b{batch} n{n}") for n in range(BATCH)))
                for batch in range(BATCHES)
            ]

        with ThreadPoolExecutor(WRITERS) as pool:
            return [batch for written in pool.map(write, range(WRITERS)) for batch in written]

    def check_order(self, store: Store, batches: list[tuple[Chunk, ...]]) -> None:
        """Asserts that numbers are unique and rise, and that all acknowledged chunks are stored."""
        acknowledged = {c.seq: c for batch in batches for c in batch}
        assert len(acknowledged) == WRITERS * BATCHES * BATCH
        for batch in batches:
            seqs = [c.seq or 0 for c in batch]
            assert seqs == sorted(seqs)
        scanned = list(store.log.scan(EVERYTHING))
        assert scanned == [acknowledged[seq] for seq in sorted(acknowledged, key=lambda s: s or 0)]

    def test_threads_write_through_one_instance(self, store: Store) -> None:
        """An instance is safe to share between threads."""
        self.check_order(store, self.write_from_all([store]))

    def test_instances_write_to_one_store(self, store: Store, other: Store) -> None:
        """Numbers come from the store, so two instances never give the same one."""
        batches = self.write_from_all([store, other])
        self.check_order(store, batches)
        self.check_order(other, batches)

    def test_a_reader_that_pages_misses_nothing(self, store: Store, other: Store) -> None:
        """After a reader has seen a sequence number, no lower one appears."""
        seen: list[Chunk] = []
        done = threading.Event()

        def follow() -> None:
            finished = False
            while not finished:
                finished = done.is_set()  # before reading, so that the last page is not missed
                last = (seen[-1].seq or 0) if seen else 0
                seen.extend(other.log.scan(EVERYTHING, after_seq=last, limit=5 * BATCH))

        def until_all_are_seen() -> None:
            follow()
            while page := list(other.log.scan(EVERYTHING, after_seq=seen[-1].seq or 0)):
                seen.extend(page)

        batches = self._while_running(
            until_all_are_seen, lambda: self.write_from_all([store, other]), done
        )
        self.check_order(store, batches)
        assert [c.id for c in seen] == [c.id for c in store.log.scan(EVERYTHING)]

    def test_searches_go_on_while_others_write(self, store: Store, other: Store) -> None:
        """A search sees only complete batches, and never fails because of a writer."""
        done = threading.Event()

        def search() -> None:
            while not done.is_set():
                hits = store.index.search(
                    self.encoder.encode(["w1"]), k=1000, where=EVERYTHING, frontier=2
                )[0]
                ids = [chunk_id for chunk_id, _ in hits]
                assert len(set(ids)) == len(ids)
                assert len(store.log.get(ids)) == len(ids)
                assert len(ids) % BATCH == 0

        self._while_running(search, lambda: self.write_from_all([store, other]), done)

    def _while_running(
        self,
        reader: Callable[[], None],
        writer: Callable[[], list[tuple[Chunk, ...]]],
        done: threading.Event,
    ) -> list[tuple[Chunk, ...]]:
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(reader)
            try:
                batches = writer()
            finally:
                done.set()
            reading.result(timeout=60)
        return batches
