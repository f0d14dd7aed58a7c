"""Judges claims ahead of any search, and keeps the verdicts in the ledger."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import numpy as np

from gcmem import deadline
from gcmem.calls import one_call
from gcmem.errors import (
    DeadlineExceededError,
    InvalidInputError,
    ModelError,
    StoreUnavailableError,
)
from gcmem.judge.pairs import can_conflict, in_order
from gcmem.protocols import (
    ClaimDetector,
    ClaimJudge,
    ClaimTable,
    FoundClaim,
    Ledger,
    Progress,
    Ruling,
    Store,
    Vectors,
)
from gcmem.types import Chunk, ChunkFilter, Claim, Scope, Verdict

logger = logging.getLogger(__name__)

CHUNKS_PER_PAGE = 16
LEASE_S = 60.0

Neighbours = Callable[[str, Vectors, ChunkFilter], list[Chunk]]
"""Returns the chunks nearest to a text with this vector, among those that pass a filter."""
PageObserver = Callable[[int, float], None]
"""Called with the number of chunks that were judged and the seconds that it took."""
ClaimPair = tuple[Claim, Claim]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How many chunks were judged, and how many verdicts found a likely conflict."""

    judged: int
    conflicts: int


class Judging:
    """Compares every new claim with the claims near it that were stored before.

    A chunk is judged once, against what has lower sequence numbers, so the order in which chunks
    are judged changes nothing. An older event that is added late is compared with newer ones too.
    """

    def __init__(
        self,
        store: Store,
        *,
        detector: ClaimDetector,
        judge: ClaimJudge,
        neighbours: Neighbours,
        clock: Callable[[], datetime],
    ) -> None:
        if store.ledger is None or store.claims is None:
            raise InvalidInputError(
                f"{store.log.location} can't keep verdicts, so nothing can be judged ahead"
            )
        self._log = store.log
        self._claims: ClaimTable = store.claims
        self._ledger: Ledger = store.ledger
        self._detector = detector
        self._neighbours = neighbours
        self._clock = clock
        self._one_page = threading.Lock()
        self.judge = judge
        self.id = f"{judge.id} on {detector.id}"
        self.observer: PageObserver | None = None

    def pending(self) -> int:
        """Returns how many chunks are still to be judged."""
        return self._ledger.pending(self.id)

    def release(self, holder: str) -> None:
        """Gives the right to judge this store back."""
        self._ledger.release(holder)

    def run(
        self,
        *,
        limit: int | None = None,
        progress: Progress | None = None,
        holder: str = "",
        goes_on: Callable[[], bool] = lambda: True,
    ) -> Judged:
        """Judges the chunks that wait, oldest first; returns the counts.

        An interrupted run loses the verdicts of one page at most, and the next run continues
        there. It ends after the chunk that it is reading if `goes_on` says so, or with `holder`, if
        another holder has the right to judge this store.
        """
        done = conflicts = 0
        total = self.pending() if limit is None else min(limit, self.pending())
        goes_on = self._with_lease(holder, goes_on)
        while done < total and goes_on():
            # Two threads take turns, so that none reads what the other one is reading.
            with self._one_page:
                page, up_to = self._next_page(total - done)
                if not page and up_to is None:
                    break
                began = time.perf_counter()
                found = self._judge_page(page, goes_on=goes_on)
                is_whole = len(found) == len(page)
                judged = self._ledger.record_judged(
                    self.id, found, up_to=up_to if is_whole else None
                )
            if self.observer is not None:
                self.observer(judged, time.perf_counter() - began)
            done += judged
            conflicts += sum(v.score >= self.judge.likely for vs in found.values() for v in vs)
            if progress is not None:
                progress(min(done, total), total)
        return Judged(judged=done, conflicts=conflicts)

    def judge_now(self, chunks: Sequence[Chunk], *, budget_s: float) -> list[str]:
        """Judges those of the chunks that wait, newest first, as far as the time allows.

        Returns the ids of those that still wait; a judge that fails leaves them to the next run.
        """
        judged = self._ledger.judged(self.id, [chunk.seq or 0 for chunk in chunks])
        waiting = [chunk for chunk in chunks if chunk.seq not in judged]
        waiting.sort(key=lambda chunk: chunk.seq or 0, reverse=True)
        with deadline.budget(budget_s) as left:
            for number, chunk in enumerate(waiting):
                try:
                    deadline.check()  # not every judge looks at the time
                    self._ledger.record_judged(self.id, self._judge_page([chunk]))
                except DeadlineExceededError:
                    if not left.is_spent():
                        raise
                except (ModelError, StoreUnavailableError) as error:  # as of a read-only store
                    logger.warning("a search could not judge what is new: %s", error)
                else:
                    continue
                return [later.id for later in waiting[number:]]
        return []

    def ask(self, older: Claim, newer: Claim, question: str) -> Verdict:
        """Judges two claims for one question; the verdict is not kept yet."""
        (ruling,) = self.judge.rule([(older, newer)], question=question)
        return self._verdict((older, newer), ruling, question=question)

    def claims(self, where: ChunkFilter, *, after: Claim | None = None) -> Iterator[Claim]:
        """Yields the known claims of matching chunks, newest first, those after `after`."""
        return self._claims.scan(where, detector=self._detector.id, after=after)

    def claims_of(self, chunks: Sequence[Chunk]) -> dict[int, list[FoundClaim]]:
        """Returns the claims of chunks, by sequence number; derives those that are not kept yet."""
        by_seq = {chunk.seq or 0: chunk for chunk in chunks}
        known = self._claims.get(list(by_seq), detector=self._detector.id)
        missing = {seq: chunk for seq, chunk in by_seq.items() if seq not in known}
        if missing:
            derived = self._detector.find(list(missing.values()))
            made = {
                seq: [_as_kept(claim) for claim in claims]
                for seq, claims in zip(missing, derived, strict=True)
            }
            self._claims.put(made, detector=self._detector.id)
            known |= made
        return known

    def _with_lease(self, holder: str, goes_on: Callable[[], bool]) -> Callable[[], bool]:
        """Returns `goes_on`, extended: it renews the holder's right, and is False without it."""
        renewed_at = -LEASE_S

        def goes_on_with_lease() -> bool:
            nonlocal renewed_at
            now = time.monotonic()
            if holder and now - renewed_at > LEASE_S / 4:
                if not self._ledger.lease(holder, seconds=LEASE_S):
                    return False
                renewed_at = now
            return goes_on()

        return goes_on_with_lease

    def _next_page(self, limit: int) -> tuple[list[Chunk], int | None]:
        """Returns the next chunks to judge, and the number up to which all are judged then."""
        cursor = self._ledger.judged_up_to(self.id)
        size = min(CHUNKS_PER_PAGE, limit)
        seen: list[Chunk] = []
        page: list[Chunk] = []
        chunks = self._log.scan(ChunkFilter(), after_seq=cursor)
        while len(page) < size and (block := list(islice(chunks, CHUNKS_PER_PAGE))):
            judged = self._ledger.judged(self.id, [chunk.seq or 0 for chunk in block])
            for chunk in block:
                if len(page) == size:
                    break
                seen.append(chunk)
                if chunk.seq not in judged:
                    page.append(chunk)
        return page, seen[-1].seq if seen else None

    def _judge_page(
        self, page: Sequence[Chunk], *, goes_on: Callable[[], bool] = lambda: True
    ) -> dict[int, list[Verdict]]:
        found: dict[int, list[Verdict]] = {}
        with one_call():
            claims = self.claims_of(page)
            for chunk in page:
                if not goes_on():
                    break
                found[chunk.seq or 0] = self._judge_chunk(chunk, claims[chunk.seq or 0])
        return found

    def _judge_chunk(self, chunk: Chunk, found: Sequence[FoundClaim]) -> list[Verdict]:
        pairs: list[ClaimPair] = []
        for claim in found:
            pairs += self._pairs_of(chunk, claim)
        rulings = self.judge.rule(pairs)
        return [
            self._verdict(pair, ruling)
            for pair, ruling in zip(pairs, rulings, strict=True)
            if ruling.score >= self.judge.floor
        ]

    def _verdict(self, pair: ClaimPair, ruling: Ruling, *, question: str = "") -> Verdict:
        older, newer = pair
        return Verdict(
            older=older.chunk.id,
            older_span=older.span,
            newer=newer.chunk.id,
            newer_span=newer.span,
            score=ruling.score,
            reason=ruling.reason,
            oracle=self.id,
            by=self.judge.kind,
            question=question,
            recorded_at=self._clock(),
        )

    def _pairs_of(self, chunk: Chunk, found: FoundClaim) -> list[ClaimPair]:
        """Returns the claim with each claim near it that it could conflict with, closest first."""
        claim = Claim(chunk=chunk, span=found.span)
        where = ChunkFilter(scope=_compared(chunk.scope), before_seq=chunk.seq)
        near = self._neighbours(claim.text, found.vector, where)
        near = [other for other in near if can_conflict(other, chunk)]
        others = self.claims_of(near)
        known = [(c, other) for c in near for other in others[c.seq or 0]]
        if not known:
            return []
        similar = np.stack([other.vector for _, other in known]) @ found.vector
        reads = self.judge.reads
        pairs = []
        for number in np.argsort(-similar, kind="stable")[: reads.most]:
            if similar[number] < reads.similarity:
                break
            older_chunk, other = known[number]
            pair = (claim, Claim(chunk=older_chunk, span=other.span))
            if pair[0].text != pair[1].text:
                pairs.append(_by_time(*pair))
        return pairs


def _as_kept(claim: FoundClaim) -> FoundClaim:
    """Returns a claim with its vector as stored, so that the first run sees what later ones see."""
    return claim._replace(vector=claim.vector.astype(np.float16).astype(np.float32))


def _compared(scope: Scope) -> Scope:
    """Returns whose chunks a chunk is compared with: all of its user's, whatever agent and run."""
    return scope if scope.user_id is None else Scope(user_id=scope.user_id)


def _by_time(one: Claim, other: Claim) -> ClaimPair:
    older, _ = in_order(one.chunk, other.chunk)
    return (one, other) if older is one.chunk else (other, one)
