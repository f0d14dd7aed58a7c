"""What is known about chunks: their claims, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from gcmem.protocols.models import Vectors
from gcmem.types import ChunkFilter, Claim, Span, Verdict

WITHDRAWN = -1.0
"""The score of a person's verdict that takes back an earlier one on the same two chunks."""


class FoundClaim(NamedTuple):
    """A claim of a chunk whose text is not at hand: its place, and the vector of its words."""

    span: Span
    vector: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A person's word that a chunk must never be left out; `is_pinned` is False if taken back."""

    chunk_id: str
    is_pinned: bool
    by: str
    recorded_at: datetime


class ClaimTable(Protocol):
    """Keeps the claims of chunks. They are derived: a better detector derives them anew."""

    def put(self, claims: Mapping[int, Sequence[FoundClaim]], *, detector: str) -> None:
        """Replaces the claims of chunks, by sequence number; a chunk may have none."""

    def get(self, seqs: Sequence[int], *, detector: str) -> dict[int, list[FoundClaim]]:
        """Returns the claims of the chunks that this detector has read, by sequence number."""

    def scan(self, where: ChunkFilter, *, detector: str, after: Claim | None) -> Iterator[Claim]:
        """Yields the claims of matching chunks, newest first, those after `after` in that order."""

    def forget(self, seqs: Sequence[int]) -> None:
        """Deletes the claims of these chunks."""


class Ledger(Protocol):
    """Keeps verdicts and pins, and which chunks each judge has read. Nothing is changed in place.

    Of several verdicts of one judge on the same two claims and question, the last one counts. All
    writes are durable, and leave out what concerns chunks that are no longer in the log.
    """

    def record(self, verdicts: Sequence[Verdict]) -> None:
        """Appends verdicts."""

    def record_judged(
        self, judge: str, found: Mapping[int, Sequence[Verdict]], *, up_to: int | None = None
    ) -> int:
        """Marks chunks as judged and appends the verdicts of each; returns how many were new.

        Both happen together, once for a chunk: a chunk that this judge has read already is left
        out. `up_to` says that everything up to that sequence number has been judged.
        """

    def verdicts(self, older: Sequence[str], *, questions: Sequence[str] = ("",)) -> list[Verdict]:
        """Returns what counts about these older chunks, in the order it was recorded."""

    def judged(self, judge: str, seqs: Sequence[int]) -> set[int]:
        """Returns which of the chunks a judge has read."""

    def judged_up_to(self, judge: str) -> int:
        """Returns the sequence number up to which a judge has read everything, at first 0."""

    def pending(self, judge: str) -> int:
        """Returns how many chunks a judge has not read."""

    def judges(self) -> list[str]:
        """Returns the judges that have read something, the last one first."""

    def lease(self, holder: str, *, seconds: float) -> bool:
        """Takes or renews the right to judge ahead; returns False if somebody else has it."""

    def release(self, holder: str) -> None:
        """Gives the right to judge ahead back."""

    def pin(self, pin: Pin) -> None:
        """Appends a pin, or that it is taken back."""

    def pins(self, ids: Sequence[str]) -> dict[str, Pin]:
        """Returns the pins of chunks that are pinned now."""

    def forget(self, ids: Sequence[str]) -> None:
        """Deletes what is known about these chunks, in the log's transaction."""

    def close(self) -> None:
        """Closes the ledger's connections."""
