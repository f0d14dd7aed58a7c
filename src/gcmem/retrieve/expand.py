"""Query expansion without a language model: the question, its declarative form, its keywords."""

from __future__ import annotations

import re

# A closed class each, so that nothing but grammar is dropped.
QUESTION_WORDS = frozenset(
    """what which who whom whose when where why how is are was were am do does did has have had
    can could will would should may might""".split()
)
STOP_WORDS = QUESTION_WORDS | frozenset(
    """a an the i me my mine we us our you your he him his she her it its they them their this
    that these those of in on at to for from with by about as and or but if so than then there
    here be been being not no nor any some days now currently right moment tell please user
    """.split()
)
WORD = re.compile(r"[^\W_]+(?:['’.\-:/][^\W_]+)*")


class KeywordExpander:
    """Deterministic expansion; a single embedding of a question is biased to its question form."""

    def expand(self, question: str) -> tuple[str, ...]:
        """Returns the question, what it would say as a statement, and its content words."""
        return unique(question.strip(), declarative(question), keywords(question))


def declarative(question: str) -> str:
    """Drops the question word and the auxiliary: "What does Ana eat?" becomes "Ana eat"."""
    words = question.strip().rstrip("?!. ").split()
    while words and words[0].lower() in QUESTION_WORDS:
        words = words[1:]
    return " ".join(words)


def keywords(question: str) -> str:
    """Keeps the content words."""
    return " ".join(w for w in WORD.findall(question) if w.lower() not in STOP_WORDS)


def unique(*queries: str) -> tuple[str, ...]:
    """Returns the queries that say something, each once, in order."""
    seen: dict[str, str] = {}
    for query in queries:
        if query.strip():
            seen.setdefault(query.strip().casefold(), query.strip())
    return tuple(seen.values())
