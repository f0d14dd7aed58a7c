"""Checks the vectors that encoders return and stores hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from gcmem.errors import EncoderError
from gcmem.protocols import ChunkLog, Encoder, QueryEncoder, VectorIndex, Vectors
from gcmem.types import ChunkFilter

NORM_TOLERANCE = 1e-3
"""How much the length of a vector may differ from 1; half precision differs by less."""
PAGE = 1000


def encode(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Returns the texts' vectors. Raises `EncoderError` if they can't be used."""
    return checked(
        encoder.encode(texts),
        count=len(texts),
        dimensions=encoder.dimensions,
        encoder_id=encoder.id,
    )


def encode_queries(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Returns the questions' vectors, as `encode` does for documents."""
    if not isinstance(encoder, QueryEncoder):
        return encode(encoder, texts)
    return checked(
        encoder.encode_queries(texts),
        count=len(texts),
        dimensions=encoder.dimensions,
        encoder_id=encoder.id,
    )


def checked(vectors: Any, *, count: int, encoder_id: str, dimensions: int | None = None) -> Vectors:
    """Returns `count` vectors as 32-bit floats. Raises unless they are finite and of length 1.

    Other float types are converted. Without `dimensions`, any number of dimensions is accepted.
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
    """Returns, for each row, whether it is finite and of length 1."""
    # One pass is enough: if a row is not finite, its square is not either and compares as false.
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        return np.asarray(np.abs(squares - 1) <= 2 * NORM_TOLERANCE)


def is_usable(vector: Vectors | None, *, dimensions: int) -> bool:
    """Returns whether a stored vector can be searched."""
    return (
        vector is not None and vector.shape == (dimensions,) and bool(are_unit(vector[None]).all())
    )


def count_unusable(log: ChunkLog, index: VectorIndex, *, dimensions: int) -> int:
    """Returns how many chunks of a log have no usable vector in the index."""
    bad = 0
    chunks = log.scan(ChunkFilter())
    while page := [chunk.id for chunk in islice(chunks, PAGE)]:
        found = index.vectors(page)
        bad += sum(not is_usable(found.get(i), dimensions=dimensions) for i in page)
    return bad
