"""Stage 3: a question becomes a frozen candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.edges import edges_of
from gcmem.retrieve.frontier import search_frontier
from gcmem.retrieve.paraphrase import ParaphraseExpander

__all__ = ["ParaphraseExpander", "edges_of", "retrieve", "search_frontier"]
