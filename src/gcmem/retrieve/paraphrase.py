"""Query expansion by a language model."""

from __future__ import annotations

from gcmem.protocols import ChatModel

SYSTEM = (
    "You rewrite a question for a search over a person's memories. Answer with short statements "
    "that a memory answering the question might contain, each from another angle. "
    "Do not guess the answer."
)


class ParaphraseExpander:
    """Asks a chat model for paraphrases; the question itself is always the first query."""

    def __init__(self, model: ChatModel, *, count: int = 3) -> None:
        self._model = model
        self._count = count

    def expand(self, question: str) -> tuple[str, ...]:
        """Returns the question and the model's paraphrases."""
        schema = {
            "type": "object",
            "properties": {
                "queries": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": self._count,
                }
            },
            "required": ["queries"],
            "additionalProperties": False,
        }
        user = f"Write {self._count} rewrites of this question:\n{question}"
        reply, _ = self._model.complete(system=SYSTEM, user=user, schema=schema)
        rewrites = [str(query) for query in reply["queries"][: self._count]]
        return _unique(question, *rewrites)


def _unique(*queries: str) -> tuple[str, ...]:
    """Returns the non-empty queries without repeats, in order."""
    seen: dict[str, str] = {}
    for query in queries:
        if query.strip():
            seen.setdefault(query.strip().casefold(), query.strip())
    return tuple(seen.values())
