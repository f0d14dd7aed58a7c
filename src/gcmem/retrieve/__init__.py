"""Stage 3: turns a question into a candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.frontier import search_frontier
from gcmem.retrieve.paraphrase import ParaphraseExpander

__all__ = ["ParaphraseExpander", "retrieve", "search_frontier"]
