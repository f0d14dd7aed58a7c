"""Stage 3: a question becomes a frozen candidate set."""

from gcmem.retrieve.candidates import retrieve
from gcmem.retrieve.expand import KeywordExpander
from gcmem.retrieve.paraphrase import ParaphraseExpander

__all__ = ["KeywordExpander", "ParaphraseExpander", "retrieve"]
