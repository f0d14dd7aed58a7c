"""Structured logs: one JSON object per line, without contents unless asked."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = logging.getLogger("gcmem.serve")
FRAMES = 5


class JSONFormatter(logging.Formatter):
    """Writes a record with the fields passed as `extra={"fields": {...}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= describe(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True, default=str)


def describe(error: BaseException) -> dict[str, Any]:
    """Returns an error's type and place, not its message, which may quote a memory."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return {
        "error": type(error).__name__,
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def configure(stream: TextIO = sys.stderr) -> None:
    """Sends gcmem's and uvicorn's logs to a stream, as JSON."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JSONFormatter())
    for name in ("gcmem.serve", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
    # uvicorn's lines on starting and stopping repeat ours.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
