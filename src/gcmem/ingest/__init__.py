"""Stage 1: splits turns into chunks."""

from gcmem.ingest.chunks import check_limits, chunks_of
from gcmem.ingest.identity import name_turns
from gcmem.ingest.sessions import read_session_file
from gcmem.ingest.turns import Message, as_turns

__all__ = [
    "Message",
    "as_turns",
    "check_limits",
    "chunks_of",
    "name_turns",
    "read_session_file",
]
