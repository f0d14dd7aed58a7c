"""Stage 3: a question becomes a frozen candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.frontier import search_frontier

__all__ = ["retrieve", "search_frontier"]
