"""Verification: counts and hashes both sides of a move, and reports differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from gcmem.errors import VerificationError
from gcmem.protocols import ChunkLog, Progress
from gcmem.transfer.rows import MODULUS, Row, Source, canonical, digest_of, storable_rows
from gcmem.transfer.stores import BATCH
from gcmem.types import ORIGIN_KEY, Chunk

MAX_REPORTED = 5
FIELDS = ("text", "at", "recorded_at", "scope", "speaker", "session", "metadata", "trust")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Both sides agree: the number of rows, their digest, and whether they are in the same order.

    The order can differ only if the store contained some of the chunks before.
    """

    rows: int
    digest: str
    in_order: bool


def verify(
    source: Source, log: ChunkLog, *, trust: bool = True, progress: Progress | None = None
) -> Verified:
    """Reads the source again and compares every row with the chunk in the log.

    It ignores merge marks, recording times that the source lacks and, without `trust`, trust
    levels. It skips rows that can't be read or stored, since the copy has reported them.
    """
    count = found = ours = theirs = last_seq = 0
    in_order = readable = True
    differences: list[str] = []
    rows = storable_rows(source, vectors=False)
    while batch := list(islice(rows, BATCH)):
        good = [row for row in batch if isinstance(row, Row)]
        readable = readable and len(good) == len(batch)
        stored = log.get([row.chunk.id for row in good])
        for row in good:
            count += 1
            recorded = row.chunk.recorded_at is not None
            content = canonical(row.chunk, recorded=recorded)
            ours += digest_of(content)
            chunk = stored.get(row.chunk.id)
            if chunk is None:
                _note(differences, f"chunk {row.chunk.id} (line {row.line}) is missing")
                continue
            found += 1
            if not trust:
                chunk = replace(chunk, trust=row.chunk.trust)
            arrived = canonical(chunk, recorded=recorded)
            theirs += digest_of(arrived)
            if arrived != content:
                _note(differences, _difference(row, chunk))
            in_order = in_order and (chunk.seq or 0) >= last_seq
            last_seq = chunk.seq or 0
        if progress is not None:
            progress(count, max(count, source.count or 0))
    ours, theirs = ours % MODULUS, theirs % MODULUS
    if readable and source.digest is not None and source.digest != ours:
        _note(differences, f"{source.name} is damaged: its rows don't match its digest")
    if differences or count != found or ours != theirs:
        raise VerificationError(
            f"{source.name} has {count} chunks (digest {ours:032x}), {log.location} has {found} of "
            f"them (digest {theirs:032x})",
            differences=tuple(differences),
        )
    return Verified(rows=count, digest=f"{ours:032x}", in_order=in_order)


def _note(differences: list[str], text: str) -> None:
    if len(differences) < MAX_REPORTED:
        differences.append(text)


def _difference(row: Row, stored: Chunk) -> str:
    names = ", ".join(_differing(row.chunk, stored))
    return f"chunk {stored.id} (line {row.line}) differs in {names}"


def _differing(ours: Chunk, theirs: Chunk) -> Iterator[str]:
    theirs = replace(theirs, metadata={k: v for k, v in theirs.metadata.items() if k != ORIGIN_KEY})
    ours = replace(ours, metadata={k: v for k, v in ours.metadata.items() if k != ORIGIN_KEY})
    for name in FIELDS:
        unknown = name == "recorded_at" and ours.recorded_at is None
        if not unknown and getattr(ours, name) != getattr(theirs, name):
            yield name
