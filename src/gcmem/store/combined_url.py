"""A store's URL may end in ?index= and the URL of the engine that keeps the vectors."""

from __future__ import annotations

import re
from urllib.parse import unquote

INDEX = re.compile(r"[?&]index=(.*)$")


def split_index(url: str) -> tuple[str, str | None]:
    """Splits a store's URL into that of the log and that of the index, if it names one."""
    found = INDEX.search(url) if "://" in url else None
    if found is None:
        return url, None
    index = found[1]
    return url[: found.start()], index if "://" in index else unquote(index)
