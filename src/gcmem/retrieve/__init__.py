"""Stage 3: turns a question into a candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.neighbours import neighbours
from gcmem.retrieve.reranking import rerank

__all__ = ["neighbours", "rerank", "retrieve"]
