"""URLs as they may be shown: in messages, reports and logs, never with a password."""

from __future__ import annotations

import re

HIDDEN = "***"
SECRET_OPTION = re.compile(r"(?i)([?&][^=&]*(?:passw|pwd|secret|token|key)[^=&]*=)[^&]*")


def redacted(url: str) -> str:
    """Returns the URL with the password and every secret of its query replaced by ***."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url  # a path
    # The last @ ends the credentials: a password that was not escaped may hold others, or a slash.
    credentials, at, place = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    shown = f"{scheme}://{user}{colon}{HIDDEN if colon else ''}{at}{place}"
    return SECRET_OPTION.sub(rf"\g<1>{HIDDEN}", shown)
