"""Hides passwords and secrets in URLs before they are shown in messages, reports and logs."""

from __future__ import annotations

import re

from gcmem.store.combined_url import split_index

HIDDEN = "***"
SECRET_OPTION = re.compile(r"(?i)([?&][^=&]*(?:passw|pwd|secret|token|key)[^=&]*=)[^&]*")


def redacted(url: str) -> str:
    """Returns the URL with the password and every secret in its query replaced by ***."""
    url, index = split_index(url)
    if index is not None:
        return f"{redacted(url)}{'&' if '?' in url else '?'}index={redacted(index)}"
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url  # a path
    # The last @ ends the credentials: an unescaped password may contain an @ or a slash itself.
    credentials, at, place = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    shown = f"{scheme}://{user}{colon}{HIDDEN if colon else ''}{at}{place}"
    return SECRET_OPTION.sub(rf"\g<1>{HIDDEN}", shown)
