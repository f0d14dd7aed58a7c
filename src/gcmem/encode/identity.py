"""Ids of encoders that run a model from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

DIGEST_CHARS = 12


def model_id(kind: str, name: str, files: Sequence[Path], **settings: str | int) -> str:
    """Returns an id with a digest of the files and every setting that changes a vector.

    Settings that are empty are left out.
    """
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    set_ones = {key: value for key, value in settings.items() if value != ""}
    query = f"?{urlencode(set_ones, quote_via=quote)}" if set_ones else ""
    return f"{kind}:{name}@{total.hexdigest()[:DIGEST_CHARS]}{query}"
