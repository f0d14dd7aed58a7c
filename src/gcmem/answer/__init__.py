"""Stage 6: readers answer from the chunks that are left."""

from gcmem.answer.context import context_of, notes_of
from gcmem.answer.llm_reader import LLMReader
from gcmem.answer.local_reader import LocalReader
from gcmem.answer.prompts import prompt_of

__all__ = ["LLMReader", "LocalReader", "context_of", "notes_of", "prompt_of"]
