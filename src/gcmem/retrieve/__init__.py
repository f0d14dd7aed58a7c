"""Stage 3: a question becomes a frozen candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.frontier import search_frontier
from gcmem.retrieve.paraphrase import ParaphraseExpander

__all__ = ["ParaphraseExpander", "retrieve", "search_frontier"]
