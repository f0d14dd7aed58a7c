"""Long streams in which one fact changes once, for the retrieval experiments."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np

from gcmem.bench.data.pool import Family, distractors, families
from gcmem.judge import GoldOracle
from gcmem.memory import Memory
from gcmem.protocols import Encoder, Store, Vectors
from gcmem.types import ChunkFilter, Scope, Turn

Style = Literal["stated", "implied"]
START = datetime(2020, 1, 1, tzinfo=UTC)
STEP = timedelta(minutes=20)
VARIANTS = 500
"""Number of distinct texts that show the old state: single sentences and joined pairs."""
NOISE_EVERY = 5
"""Before the update every fifth chunk is unrelated; after it, every chunk is."""
SCOPE = Scope(user_id="stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """`length` chunks before the update, one that shows the new state, then unrelated chunks.

    `where(old=…, after=…)` selects a shorter history or an earlier question. The first chunk
    states a fact of another family, `standing`, that nothing contradicts.
    """

    family: Family
    standing: Family
    options: tuple[str, ...]
    old_state: str
    new_state: str
    store: Store
    vectors: Vectors
    length: int

    def where(self, *, old: int, after: int) -> ChunkFilter:
        """Returns a filter for `old` chunks before the update and `after` chunks after it."""
        first = START + STEP * (self.length - old)
        last = START + STEP * (self.length + after)
        return ChunkFilter(scope=SCOPE, after=first - STEP / 2, as_of=last)

    def rows(self, *, old: int, after: int) -> slice:
        """Returns the same selection as a slice of `vectors`."""
        return slice(self.length - old, self.length + 1 + after)

    def state_of(self, chunk_id: str) -> str | None:
        """Returns the state that a chunk shows, or None for an unrelated chunk."""
        return {"new": self.new_state, "old": self.old_state}.get(chunk_id.partition(":")[0])


class Texts:
    """An encoder that encodes each text once; many instances share texts."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.id = encoder.id
        self.dimensions = encoder.dimensions
        self._vectors: dict[str, Vectors] = {}
        self._tokens: dict[str, int] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text."""
        missing = list(dict.fromkeys(t for t in texts if t not in self._vectors))
        if missing:
            self._vectors.update(zip(missing, self.encoder.encode(missing), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text."""
        missing = list(dict.fromkeys(t for t in texts if t not in self._tokens))
        if missing:
            self._tokens.update(zip(missing, self.encoder.count_tokens(missing), strict=True))
        return [self._tokens[text] for text in texts]


def make_stream(
    texts: Texts, family: Family, *, style: Style, old: int, after: int, seed: int
) -> Stream:
    """Creates a stream about a family; the seed decides the states, the wording and the order."""
    rng = random.Random(f"{family.name} {style} {seed}")
    old_state, new_state = rng.sample(sorted(family.states), 2)
    said = _variants(family, old_state, style, rng)
    names = [other.name for other in families()]
    standing = families()[(names.index(family.name) + 1) % len(names)]
    noise = _noise({family.name, standing.name}, rng)
    rows = [
        ("noise", rng.choice(noise)) if n % NOISE_EVERY == 0 else ("old", rng.choice(said))
        for n in range(old)
    ]
    rows[0] = ("standing", rng.choice(standing.statements[rng.choice(sorted(standing.states))]))
    rows.append(("new", rng.choice(_lines(family, new_state, style))))
    rows += [("noise", text) for text in rng.sample(noise, after)]
    ended = START + STEP * len(rows)
    memory = Memory(":memory:", encoder=texts, oracle=GoldOracle(()), clock=lambda: ended)
    turns = [
        Turn(id=f"{kind}:{n}", text=text, at=START + STEP * n)
        for n, (kind, text) in enumerate(rows)
    ]
    chunks = memory.add(turns, user_id=SCOPE.user_id)
    return Stream(
        family=family,
        standing=standing,
        options=tuple(sorted(family.states)),
        old_state=old_state,
        new_state=new_state,
        store=memory.store,
        vectors=texts.encode([chunk.text for chunk in chunks]),
        length=old,
    )


def _lines(family: Family, state: str, style: Style) -> list[str]:
    if style == "stated":
        return list(family.statements[state])
    return [line.text for line in family.states[state]]


def _variants(family: Family, state: str, style: Style, rng: random.Random) -> list[str]:
    lines, shown = _lines(family, state, style), _lines(family, state, "implied")
    texts = dict.fromkeys(lines)
    while len(texts) < VARIANTS:
        texts[f"{rng.choice(lines)} {rng.choice(shown)}"] = None
    return list(texts)


def _noise(left_out: set[str], rng: random.Random) -> list[str]:
    others = [
        line.text
        for other in families()
        if other.name not in left_out
        for lines in other.states.values()
        for line in rng.sample(lines, 4)
    ]
    return [line.text for line in distractors()] + others
