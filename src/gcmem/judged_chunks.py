"""What a memory does with verdicts: judging ahead, and taking a person's word."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from gcmem.errors import InvalidInputError
from gcmem.filters import check_limit, make_filter
from gcmem.ingest.turns import check_text
from gcmem.judge.ahead import Judged, Judging
from gcmem.judge.background import BackgroundJudge
from gcmem.protocols import WITHDRAWN, Ledger, Pin, Progress
from gcmem.resolve import LedgerResolver
from gcmem.stored_chunks import StoredChunks
from gcmem.types import Chunk, ChunkFilter, Claim, Resolution, Verdict, is_storable, utc

CLAIMS_PER_PAGE = 100

_Scope = Mapping[str, str | None]


class JudgedChunks(StoredChunks):
    """Judges chunks ahead of searches, and keeps what a person says about them."""

    _judging: Judging | None
    _by_ledger: LedgerResolver | None
    _background: BackgroundJudge | None = None
    _clock: Callable[[], datetime]

    def judge(self, *, limit: int | None = None, progress: Progress | None = None) -> Judged:
        """Judges what is still waiting, now; returns how many chunks, and how many conflicts.

        `limit` is the maximum number of chunks per call; after an interruption, the next call
        continues.
        """
        check_limit(limit)
        if progress is not None and not callable(progress):
            raise InvalidInputError(f"progress={progress!r}: pass a function of (done, total)")
        return self.judging.run(limit=limit, progress=progress)

    def link(self, *, limit: int | None = None, progress: Progress | None = None) -> Judged:
        """Does the same as `judge`, under its old name, which the next release drops."""
        warnings.warn("Memory.link is called judge now", DeprecationWarning, stacklevel=2)
        return self.judge(limit=limit, progress=progress)

    def pending(self) -> int:
        """Returns how many chunks have not been judged yet."""
        return self.judging.pending()

    def pin(self, chunk_id: str, *, by: str = "user", **scope: str | None) -> None:
        """Keeps a chunk in every result, whatever contradicts it; `by` says whose word that is."""
        self._pin(chunk_id, is_pinned=True, by=by, scope=scope)

    def unpin(self, chunk_id: str, *, by: str = "user", **scope: str | None) -> None:
        """Takes a pin back."""
        self._pin(chunk_id, is_pinned=False, by=by, scope=scope)

    def confirm(
        self, older: str, newer: str, *, by: str = "user", reason: str = "", **scope: str | None
    ) -> Verdict:
        """Says that one chunk ended what another said. It outranks every model, also later ones."""
        return self._say(older, newer, score=1.0, by=by, reason=reason, scope=scope)

    def reject(
        self, older: str, newer: str, *, by: str = "user", reason: str = "", **scope: str | None
    ) -> Verdict:
        """Says that one chunk does not contradict another. It outranks every model."""
        return self._say(older, newer, score=0.0, by=by, reason=reason, scope=scope)

    def undo(
        self, older: str, newer: str, *, by: str = "user", reason: str = "", **scope: str | None
    ) -> Verdict:
        """Takes back what a person said about two chunks, so that models decide again."""
        return self._say(older, newer, score=WITHDRAWN, by=by, reason=reason, scope=scope)

    def current(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: datetime | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = CLAIMS_PER_PAGE,
        after: Claim | None = None,
    ) -> tuple[Claim, ...]:
        """Returns the claims that stand, newest first, without a question.

        `after` is the last claim of the page before. Chunks that have not been judged are missing:
        `pending` counts them.
        """
        check_limit(limit)
        if after is not None and not isinstance(after, Claim):
            raise InvalidInputError(f"after={after!r}: pass the last claim of the page before")
        where = make_filter(user_id, agent_id, run_id, as_of, None, filters)
        return tuple(islice(self._standing(where, after=after), limit))

    def outcomes(self, chunks: Sequence[Chunk], *, where: ChunkFilter | None = None) -> Resolution:
        """Returns what is known about chunks without a question; judges nothing.

        Only what `where` admits can end a chunk.
        """
        return self._verdicts.overview(chunks, log=self.store.log, where=where or ChunkFilter())

    @property
    def judging(self) -> Judging:
        """Judges the store's claims; its id names the judge in the ledger."""
        if self._judging is None:
            raise InvalidInputError(
                f"{self.store.log.location} can't keep verdicts, so nothing can be judged ahead"
            )
        return self._judging

    @property
    def _verdicts(self) -> LedgerResolver:
        assert self.judging is not None
        assert self._by_ledger is not None
        return self._by_ledger

    @property
    def _ledger(self) -> Ledger:
        assert self.judging is not None
        assert self.store.ledger is not None
        return self.store.ledger

    def _standing(self, where: ChunkFilter, *, after: Claim | None) -> Iterator[Claim]:
        claims = self.judging.claims(where, after=after)
        while page := list(islice(claims, CLAIMS_PER_PAGE)):
            chunks = {claim.chunk.id: claim.chunk for claim in page}
            found = self.outcomes(list(chunks.values()), where=where)
            ended = [shadow.claim for shadow in found.shadows if shadow.claim is not None]
            # By place, not by id: a person ends whole messages, another detector other sentences.
            yield from (c for c in page if not any(c.overlaps(other) for other in ended))

    def _pin(self, chunk_id: str, *, is_pinned: bool, by: str, scope: _Scope) -> None:
        chunk = self.get(chunk_id, **scope)
        self._ledger.pin(
            Pin(chunk_id=chunk.id, is_pinned=is_pinned, by=_name(by), recorded_at=self._time())
        )

    def _say(
        self, older: str, newer: str, *, score: float, by: str, reason: str, scope: _Scope
    ) -> Verdict:
        chunks = self.get(older, **scope), self.get(newer, **scope)
        if chunks[0].id == chunks[1].id:
            raise InvalidInputError("older and newer are the same chunk: pass two")
        if chunks[1].precedes(chunks[0]):
            raise InvalidInputError(f"{newer} is older than {older}: pass the older chunk first")
        # A person means what a model found, or the whole message.
        known = [v for v in self._ledger.verdicts([older]) if v.newer == newer]
        best = max(known, key=lambda verdict: verdict.score, default=None)
        spans = [(0, len(chunk.text)) for chunk in chunks]
        verdict = Verdict(
            older=older,
            older_span=spans[0] if best is None else best.older_span,
            newer=newer,
            newer_span=spans[1] if best is None else best.newer_span,
            score=score,
            oracle=_name(by),
            by="person",
            reason=check_text(reason, name="reason") if reason else "",
            recorded_at=self._time(),
        )
        self._ledger.record([verdict])
        return verdict

    def _time(self) -> datetime:
        return utc(self._clock(), name="clock()")


def _name(by: str) -> str:
    if not isinstance(by, str) or not by.strip() or not is_storable(by):
        raise InvalidInputError(f"by={by!r}: pass the name of whose word this is")
    return by.strip()
