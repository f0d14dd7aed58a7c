"""Turns any pair classifier into a conflict oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from gcmem import deadline
from gcmem.calls import as_one_call, current_call
from gcmem.errors import InvalidInputError
from gcmem.judge.local.focus import Focus
from gcmem.judge.pairs import by_time, possible_pairs
from gcmem.judge.recipe import PLAIN, GateSettings, describe, oracle_id, shipped_recipe
from gcmem.protocols import Encoder, PairClassifier, QuickClassifier, ScoreCache, ScoreKey, Vectors
from gcmem.types import CandidateSet, Chunk, Conflict

Pair = tuple[Chunk, Chunk]
Key = tuple[str, str]
Queues = dict[str, list[Chunk]]


def closeness(
    one: Vectors, other: Vectors, question: Vectors | None, *, on_topic: float
) -> Vectors:
    """Returns, for each pair, the mean of its similarity and its similarity to the question.

    The text less similar to the question decides the latter; if it is off the topic, the pair gets
    -1. Rows are multiplied one by one: in a matrix product a cosine depends on the other rows.
    """
    similar: Vectors = (one * other).sum(axis=-1)
    if question is None:
        return similar
    asked = np.minimum((one * question).sum(axis=-1), (other * question).sum(axis=-1))
    # A low bound is enough: a text can answer a question and share few words with it.
    return np.where(asked < on_topic, np.float32(-1.0), (similar + asked) / 2)


class TopicGate:
    """Selects the pairs worth judging: both chunks on the question's topic and similar.

    An off-topic chunk can neither answer the question nor contradict an answer. With few pairs
    there is little to save, so half of the closeness is enough and the question is ignored.
    """

    def __init__(self, encoder: Encoder, settings: GateSettings | None = None) -> None:
        """`settings` defaults to those of the shipped model."""
        self._encoder = encoder
        self.settings = settings or shipped_recipe().gate

    @property
    def id(self) -> str:
        """The encoder's id and the settings in one line."""
        return describe(self.settings, encoder=self._encoder.id)

    def select(self, candidates: CandidateSet, pairs: list[Pair]) -> list[Pair]:
        """Returns the pairs that are worth judging, closest first."""
        if not pairs:
            return []
        few = len(pairs) <= self.settings.few
        asked = [] if few or not candidates.query.strip() else [candidates.query]
        chunks = {chunk.id: chunk for pair in pairs for chunk in pair}
        # The key includes the id, so that nobody can find an erased chunk's vector by its text.
        keys = [("chunk", self._encoder.id, chunk.id, chunk.text) for chunk in chunks.values()]
        texts = [chunk.text for chunk in chunks.values()]
        vectors = current_call().vectors(keys, texts, self._encoder)
        row = {chunk_id: number for number, chunk_id in enumerate(chunks)}
        close = closeness(
            vectors[[row[older.id] for older, _ in pairs]],
            vectors[[row[newer.id] for _, newer in pairs]],
            self._encoder.encode(asked)[0] if asked else None,
            on_topic=self.settings.on_topic,
        )
        order = np.argsort(-close, kind="stable").tolist()
        bound = self.settings.closeness / (2 if few else 1)
        return [pairs[n] for n in order if close[n] >= bound]


class PairwiseOracle:
    """Compares every chunk with newer ones until one contradicts it.

    Without a gate, newer chunks are read newest first. With a gate, the newest is read first, then
    the closest, then a few more. If the classifier has a quick `glance`, its scores decide which
    are read first and, with many pairs, which are skipped. A chunk that contradicted one chunk is
    compared with the other older chunks too: a changed fact was often stated several times.

    One witness is enough to shadow a chunk, so only the conflicts needed for the verdict are
    returned. A pair without an order in time is always judged, so that it can be reported.
    """

    def __init__(
        self,
        classifier: PairClassifier,
        *,
        threshold: float = 0.5,
        gate: TopicGate | None = None,
        focus: Focus | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise InvalidInputError(f"threshold={threshold}: pass a value from 0 to 1")
        self._threshold = threshold
        self._gate = gate
        self._focus = focus
        self._cache = cache
        self.classifier = classifier
        self.language: str | None = getattr(classifier, "language", None)
        self.parts = {
            "threshold": f"{threshold:g}",
            "gate": gate.id if gate else "none",
            "focus": focus.id if focus else "none",
            "chain": "none",
        }
        # Qualification applies to the classifier together with its settings.
        self.id = oracle_id(classifier, self.parts)

    @as_one_call
    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts that decide which chunks stay."""
        *stages, far = self._comparison_queues(candidates)
        by_id = {item.chunk.id: item.chunk for item in candidates}
        pair_scores = _PairScores(self.classifier, candidates.query, self._focus, self._cache)
        every = (*stages, far)
        count = sum(len(queue) for queues in every for queue in queues.values())
        gate = self._gate.settings if self._gate else None
        min_glance = min(gate.promising, self._threshold) if gate and count > gate.few else 0.0
        pair_scores.load_cached(
            (by_id[i], n) for queues in every for i in queues for n in queues[i]
        )
        found: list[Conflict] = []
        shadowed: set[str] = set()
        for number, near in enumerate(stages, 1):
            while near := _still_to_judge(near, by_id, shadowed):
                deadline.check()
                near = pair_scores.likeliest_first(near, by_id, min_glance=min_glance)
                batch = [(by_id[i], queue.pop(0)) for i, queue in near.items() if queue]
                witnesses: set[str] = set()
                for (older, newer), score in zip(batch, pair_scores.scores(batch), strict=True):
                    if score >= self._threshold:
                        found.append(
                            Conflict(older=older.id, newer=newer.id, score=score, oracle=self.id)
                        )
                        if older.precedes(newer):
                            shadowed.add(older.id)
                            witnesses.add(newer.id)
                for queues in every[number:]:
                    for i, queue in queues.items():
                        near[i] = [*near.get(i, []), *(n for n in queue if n.id in witnesses)]
                        queues[i] = [n for n in queue if n.id not in witnesses]
        return tuple(found)

    def _comparison_queues(self, candidates: CandidateSet) -> tuple[Queues, ...]:
        """Returns the comparison queues by stage. The last is read only for known witnesses."""
        pairs = possible_pairs(candidates)
        if self._gate is None:
            pairs.sort(key=lambda pair: by_time(pair[1]), reverse=True)
        else:
            pairs = self._gate.select(candidates, pairs)
        newer: Queues = {}  # by id: hashing whole chunks is slow
        for one, other in pairs:
            newer.setdefault(one.id, []).append(other)
        if self._gate is None:
            return newer, {}
        by_id = {item.chunk.id: item.chunk for item in candidates}
        stages: tuple[Queues, ...] = ({}, {}, {}, {})
        newest, nearest, near, far = stages
        most = self._gate.settings.near
        for i, queue in newer.items():
            free = [other for other in queue if _unordered(by_id[i], other)]
            later = [other for other in queue if not _unordered(by_id[i], other)]
            last = [later.pop(later.index(max(later, key=by_time)))] if later else []
            newest[i], nearest[i] = [*last, *free], later[:1]
            near[i], far[i] = later[1 : most - 1], later[most - 1 :]
        return stages


def _still_to_judge(queues: Queues, by_id: Mapping[str, Chunk], shadowed: set[str]) -> Queues:
    """Returns the queues still to be judged; a shadowed chunk needs no other witness."""
    left = {
        i: [n for n in queue if i not in shadowed or _unordered(by_id[i], n)]
        for i, queue in queues.items()
    }
    return {i: queue for i, queue in left.items() if queue}


class _PairScores:
    """Scores the pairs of one set, and remembers and caches the scores."""

    def __init__(
        self,
        classifier: PairClassifier,
        question: str,
        focus: Focus | None,
        cache: ScoreCache | None,
    ) -> None:
        self._question, self._cache = question, cache
        self._score = partial(focus.score, classifier.score) if focus else classifier.score
        self._known: dict[Key, float] = {}
        self._glanced: dict[Key, float] = {}
        self._glance = classifier.glance if isinstance(classifier, QuickClassifier) else None
        # Focus changes the scores, so they are cached apart from the classifier's own.
        recipe = getattr(classifier, "recipe", None)
        plain = PLAIN if recipe is None else recipe.parts
        scorer = oracle_id(classifier, {**plain, "focus": focus.id if focus else "none"})
        self._scores_key = ScoreKey(scorer=scorer, question=question)
        self._glances_key = ScoreKey(scorer=classifier.id, question=question, kind="glance")

    def load_cached(self, pairs: Iterable[Pair]) -> None:
        """Loads the cached scores of all pairs at once."""
        if self._cache is None:
            return
        keys = [(older.id, newer.id) for older, newer in pairs]
        self._known = self._cache.get(self._scores_key, keys)
        if self._glance is not None:
            self._glanced = self._cache.get(self._glances_key, keys)

    def scores(self, pairs: list[Pair]) -> list[float]:
        """Returns the score of each pair."""
        self._known |= self._read(pairs, self._known, self._scores_key, self._score)
        return [self._known[older.id, newer.id] for older, newer in pairs]

    def likeliest_first(
        self, queues: Queues, by_id: Mapping[str, Chunk], *, min_glance: float
    ) -> Queues:
        """Sorts the queues by quick score and drops pairs that score below `min_glance`."""
        if self._glance is None:
            return queues
        pairs = [(by_id[i], newer) for i, queue in queues.items() for newer in queue]
        unknown = [(a, b) for a, b in pairs if (a.id, b.id) not in self._known]
        self._glanced |= self._read(unknown, self._glanced, self._glances_key, self._glance)
        # Quick scores override full ones, so that a cached score can't change the reading order.
        glances = self._known | self._glanced
        worth = {
            i: [n for n in queue if glances[i, n.id] >= min_glance or _unordered(by_id[i], n)]
            for i, queue in queues.items()
        }
        return {
            i: sorted(queue, key=lambda newer, i=i: -glances[i, newer.id])  # type: ignore[misc]
            for i, queue in worth.items()
        }

    def _read(
        self,
        pairs: list[Pair],
        known: Mapping[Key, float],
        key: ScoreKey,
        score: Callable[[str, Sequence[tuple[str, str]]], list[float]],
    ) -> dict[Key, float]:
        """Scores the pairs that are not in `known` and caches the scores."""
        missing = [(a, b) for a, b in pairs if (a.id, b.id) not in known]
        scores = score(self._question, [(a.text, b.text) for a, b in missing]) if missing else []
        fresh = {(a.id, b.id): s for (a, b), s in zip(missing, scores, strict=True)}
        if self._cache is not None and fresh:
            self._cache.put(key, fresh)
        return fresh


def _unordered(a: Chunk, b: Chunk) -> bool:
    return a.precedes(b) is None
