"""Stage 3: turns a question into a candidate set."""

from gcmem.retrieve.candidates import retrieve

__all__ = ["retrieve"]
