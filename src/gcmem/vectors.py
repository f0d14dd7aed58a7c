"""Vectors, checked: what an encoder returns, and what a store holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from gcmem.errors import EncoderError
from gcmem.protocols import ChunkLog, Encoder, Vectors, VectorSource
from gcmem.types import ChunkFilter

NORM_TOLERANCE = 1e-3
"""How far from 1 the length of a vector may be; half precision is off by less."""
PAGE = 1000


def encode(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Returns what the encoder makes of the texts; raises where that can't be used."""
    return checked(
        encoder.encode(texts),
        count=len(texts),
        dimensions=encoder.dimensions,
        encoder_id=encoder.id,
    )


def checked(vectors: Any, *, count: int, encoder_id: str, dimensions: int | None = None) -> Vectors:
    """Returns `count` vectors as 32-bit floats; raises unless they are finite and of length 1.

    Other kinds of floats are converted. Without `dimensions`, any number of them is right.
    """
    try:
        found = np.asarray(vectors)
    except ValueError:
        raise EncoderError(encoder_id, "returned rows of different lengths") from None
    if found.dtype.kind != "f":
        raise EncoderError(encoder_id, f"returned {found.dtype} values, not floats")
    wanted = (count, found.shape[-1] if dimensions is None and found.ndim else dimensions)
    if found.shape != wanted:
        raise EncoderError(encoder_id, f"returned the shape {found.shape}, not {wanted}")
    rows: Vectors = np.ascontiguousarray(found, dtype=np.float32)
    bad = int(np.count_nonzero(~are_unit(rows)))
    if bad:
        raise EncoderError(
            encoder_id,
            f"returned {bad} of {count} vectors that are not finite or not of length 1",
        )
    return rows


def are_unit(rows: Vectors) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tells, for each row, whether it is finite and of length 1."""
    # One pass: the square of a row that is not finite is not either, and compares as false.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        return np.asarray(np.abs(squares - 1) <= 2 * NORM_TOLERANCE)


def is_usable(vector: Vectors | None, *, dimensions: int) -> bool:
    """Tells whether a stored vector can be searched."""
    return (
        vector is not None and vector.shape == (dimensions,) and bool(are_unit(vector[None]).all())
    )


def count_unusable(log: ChunkLog, *, dimensions: int) -> int:
    """Returns how many chunks of a log have no vector that can be searched.

    0 where the log does not give its vectors back.
    """
    if not isinstance(log, VectorSource):
        return 0
    bad = 0
    chunks = log.scan(ChunkFilter())
    while page := [chunk.id for chunk in islice(chunks, PAGE)]:
        found = log.vectors(page)
        bad += sum(not is_usable(found.get(i), dimensions=dimensions) for i in page)
    return bad
