"""A conflict oracle that asks a language model."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gcmem import deadline
from gcmem.errors import InvalidInputError, ModelNotFoundError, ModelResponseError
from gcmem.judge.pairs import by_time, can_conflict, in_order, possible_pairs
from gcmem.protocols import ChatModel
from gcmem.quoting import HOW_QUOTED, memory_tag, quoted
from gcmem.types import CandidateSet, Chunk, Conflict, check_choice

Style = Literal["listwise", "pairwise"]

MIN_CONFIDENCE = 0.5

SYSTEM = (
    f"You find memories that can't both be true now. {HOW_QUOTED}\n"
    "Two memories conflict when the newer one shows that what the older one says about the same "
    "person or thing no longer holds, in a way that changes the answer to the question. It need "
    "not say so: what somebody does can show it.\n"
    "They do not conflict when they are about different people, things or properties, when both "
    "can hold at once, when one is a passing exception, or when one is only a wish, a plan, a "
    "question or a supposition."
)
ASK_PAIR = (
    "Does the newer memory conflict with the older one? Answer true or false, and how sure you "
    "are, as a confidence from 0 to 1."
)
# One witness is enough to shadow a chunk; a list of all would not fit into the reply.
ASK_LIST = (
    "Which memories no longer hold because a newer one conflicts with them? List each such older "
    "memory once, by its number, with the number of the newest memory that conflicts with it and "
    "a confidence from 0 to 1. If there is none, the list is empty."
)

# No minimum, maximum or maxItems: several endpoints refuse a strict schema that has them.
PAIR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"conflict": {"type": "boolean"}, "confidence": {"type": "number"}},
    "required": ["conflict", "confidence"],
    "additionalProperties": False,
}
LIST_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "conflicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "older": {"type": "integer"},
                    "newer": {"type": "integer"},
                    "confidence": {"type": "number"},
                },
                "required": ["older", "newer", "confidence"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["conflicts"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMUsage:
    """Calls, tokens and failures of one or more judgements.

    `malformed` counts unreadable replies and list entries; `unjudged` counts the pairs that were
    skipped because of `max_pairs` or the token budget.
    """

    calls: int = 0
    tokens: int = 0
    malformed: int = 0
    unjudged: int = 0

    def __add__(self, other: LLMUsage) -> LLMUsage:
        return LLMUsage(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            malformed=self.malformed + other.malformed,
            unjudged=self.unjudged + other.unjudged,
        )


class LLMOracle:
    """Asks any chat model, once per set ("listwise") or once per pair ("pairwise").

    An unreadable reply counts as no conflict. `last_usage` describes the last judgement,
    `total_usage` all since the oracle was created. `max_tokens_total` is a budget for the oracle's
    lifetime: once it is spent no new call starts, but running calls finish.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        style: Style = "listwise",
        max_workers: int = 4,
        max_pairs: int = 200,
        max_tokens_total: int | None = None,
    ) -> None:
        """`max_workers` and `max_pairs` apply to the pairwise style only.

        A listwise reply needs up to about 25 tokens per chunk: set the model's limit accordingly.
        """
        check_choice(style, name="style", allowed=get_args(Style))
        if max_workers < 1 or max_pairs < 1:
            raise InvalidInputError(
                f"max_workers={max_workers}, max_pairs={max_pairs}: pass at least 1"
            )
        if max_tokens_total is not None and max_tokens_total < 0:
            raise InvalidInputError(f"max_tokens_total={max_tokens_total}: pass 0 or more, or None")
        self._model = model
        self._style = style
        self._max_workers = max_workers
        self._max_pairs = max_pairs
        self._max_tokens_total = max_tokens_total
        self._tokens_total = 0
        self._lock = threading.Lock()
        self.id = f"llm:{model.id}:{style}@2"
        self.last_usage = self.total_usage = LLMUsage()

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts that the model reports with a confidence of at least 0.5."""
        tally = _Tally()
        try:
            if self._style == "pairwise":
                return self._pairwise(candidates, tally)
            return self._listwise(candidates, tally)
        finally:
            # Assign a frozen value at once, so that other threads never see it half updated.
            self.last_usage = tally.usage
            with self._lock:
                self.total_usage += tally.usage

    def _pairwise(self, candidates: CandidateSet, tally: _Tally) -> tuple[Conflict, ...]:
        # Newest witnesses first: if `max_pairs` cuts the list, they matter most.
        pairs = sorted(
            possible_pairs(candidates),
            key=lambda pair: (by_time(pair[1]), by_time(pair[0])),
            reverse=True,
        )
        asked = pairs[: self._max_pairs]
        tally.add(unjudged=len(pairs) - len(asked))
        if not asked:
            return ()

        def confidence(pair: tuple[Chunk, Chunk]) -> float:
            older, newer = pair
            tags = [memory_tag(older, age="older"), memory_tag(newer, age="newer")]
            user = _message(candidates, tags, ASK_PAIR)
            reply = self._ask(user, PAIR_SCHEMA, tally, pairs=1)
            return _clipped(reply["confidence"]) if reply and reply["conflict"] else 0.0

        workers = min(self._max_workers, len(asked))
        scores = deadline.map_in_threads(confidence, asked, workers=workers)
        return tuple(
            Conflict(older=older.id, newer=newer.id, score=score, oracle=self.id)
            for (older, newer), score in zip(asked, scores, strict=True)
            if score >= MIN_CONFIDENCE
        )

    def _listwise(self, candidates: CandidateSet, tally: _Tally) -> tuple[Conflict, ...]:
        pairs = possible_pairs(candidates)
        if not pairs:
            return ()
        chunks = sorted((item.chunk for item in candidates), key=by_time)
        users = list(dict.fromkeys(chunk.scope.user_id for chunk in chunks))
        tags = [
            # With several users, number them: the model must tell them apart without their ids.
            memory_tag(chunk, number=number, person=users.index(chunk.scope.user_id) + 1)
            if len(users) > 1
            else memory_tag(chunk, number=number)
            for number, chunk in enumerate(chunks, start=1)
        ]
        user = _message(candidates, tags, ASK_LIST)
        reply = self._ask(user, LIST_SCHEMA, tally, pairs=len(pairs))
        scores: dict[tuple[str, str], float] = {}
        for entry in reply["conflicts"] if reply else ():
            pair = _entry_pair(entry, chunks)
            if pair is None:
                tally.add(malformed=1)
                continue
            scores[pair] = max(_clipped(entry["confidence"]), scores.get(pair, 0.0))
        return tuple(
            Conflict(older=older, newer=newer, score=score, oracle=self.id)
            for (older, newer), score in scores.items()
            if score >= MIN_CONFIDENCE
        )

    def _ask(
        self, user: str, schema: dict[str, Any], tally: _Tally, *, pairs: int
    ) -> dict[str, Any] | None:
        """Returns the reply, or None if it is unreadable or the budget is spent."""
        with self._lock:
            spent = (
                self._max_tokens_total is not None and self._tokens_total >= self._max_tokens_total
            )
        if spent:
            tally.add(unjudged=pairs)
            return None
        deadline.check()
        tally.add(calls=1)
        reply: dict[str, Any] | None = None
        try:
            reply, tokens = self._model.complete(system=SYSTEM, user=user, schema=schema)
        except ModelNotFoundError:
            raise  # a wrong model name must not pass for "nothing conflicts"
        except ModelResponseError as error:
            tokens = error.tokens
            tally.add(malformed=1)
        tally.add(tokens=tokens)
        with self._lock:
            self._tokens_total += tokens
        return reply


class _Tally:
    """Adds up the usage of one judgement's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.usage = LLMUsage()

    def add(
        self, *, calls: int = 0, tokens: int = 0, malformed: int = 0, unjudged: int = 0
    ) -> None:
        more = LLMUsage(calls=calls, tokens=tokens, malformed=malformed, unjudged=unjudged)
        with self._lock:
            self.usage += more


def _message(candidates: CandidateSet, tags: list[str], task: str) -> str:
    """Returns the user message: the memories oldest first, the question, the task."""
    lines = [quoted(tags), "", f"Question: {candidates.query}"]
    if candidates.options:
        lines.append("Possible answers: " + " | ".join(candidates.options))
    return "\n".join([*lines, task])


def _entry_pair(entry: dict[str, Any], chunks: list[Chunk]) -> tuple[str, str] | None:
    """Returns the two ids of a list entry, older first, or None if they can't conflict.

    The chunks' times decide which is older, in case the model swapped the two.
    """
    first, second = entry["older"], entry["newer"]
    if not (1 <= first <= len(chunks) and 1 <= second <= len(chunks)):
        return None
    a, b = chunks[first - 1], chunks[second - 1]
    if not can_conflict(a, b):  # also rejects a chunk paired with itself
        return None
    older, newer = in_order(a, b)
    return older.id, newer.id


def _clipped(confidence: float) -> float:
    return float(min(max(confidence, 0.0), 1.0))
