"""Stage 3: turns a question into a candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.frontier import search_frontier

__all__ = ["retrieve", "search_frontier"]
