"""Stage 3: turns a question into a candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.reranking import rerank

__all__ = ["rerank", "retrieve"]
