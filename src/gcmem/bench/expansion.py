"""What a second wording of the question adds to retrieval: the forms that were tried, measured.

None of them earned its place, so a search sends the question alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gcmem.bench.instances import Instance
from gcmem.protocols import Encoder, Progress

# Closed classes, so that nothing but grammar is dropped.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionRow:
    """One form beside the question: how often the k best hold the new state, and the topic."""

    form: str
    found_new: float
    on_topic: float
    """The share of the k best that show any state."""


def declarative(question: str) -> str:
    """Drops the question word and the auxiliary: "What does Ana eat?" becomes "Ana eat"."""
    words = question.strip().rstrip("?!. ").split()
    while words and words[0].lower() in QUESTION_WORDS:
        words = words[1:]
    return " ".join(words)


def keywords(question: str) -> str:
    """Keeps the content words."""
    return " ".join(w for w in WORD.findall(question) if w.lower() not in STOP_WORDS)


FORMS: dict[str, Callable[[Instance], list[str]]] = {
    "the question alone": lambda _: [],
    "and as a statement": lambda i: [declarative(i.question)],
    "and its keywords": lambda i: [keywords(i.question)],
    "and with each option": lambda i: [f"{i.question} {option}" for option in i.options],
}


def expansion(
    encoder: Encoder,
    instances: Sequence[Instance],
    *,
    k: int = 10,
    progress: Progress | None = None,
) -> list[ExpansionRow]:
    """Measures every form on the instances that have a new state."""
    found: dict[str, list[tuple[bool, float]]] = {form: [] for form in FORMS}
    asked = [i for i in instances if i.of_kind("new")]
    for number, instance in enumerate(asked, 1):
        vectors = encoder.encode([turn.text for turn in instance.turns])
        for form, more in FORMS.items():
            queries = [q for q in (instance.question, *more(instance)) if q]
            scores = (encoder.encode(queries) @ vectors.T).max(axis=0)
            kinds = [instance.turns[n].kind for n in np.argsort(-scores)[:k]]
            topical = [kind in ("old", "new") for kind in kinds]
            found[form].append(("new" in kinds, float(np.mean(topical))))
        if progress is not None:
            progress(number, len(asked))
    return [
        ExpansionRow(
            form=form,
            found_new=round(float(np.mean([hit for hit, _ in rows])), 4),
            on_topic=round(float(np.mean([share for _, share in rows])), 4),
        )
        for form, rows in found.items()
    ]
