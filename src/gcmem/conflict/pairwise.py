"""Makes a conflict oracle of anything that can score a pair."""

from __future__ import annotations

import numpy as np

from gcmem.conflict.pairs import by_time, possible_pairs
from gcmem.errors import InvalidInputError
from gcmem.protocols import Encoder, PairClassifier, VerdictCache
from gcmem.types import CandidateSet, Chunk, Conflict

Pair = tuple[Chunk, Chunk]

ROUND = 2
"""How many witnesses a chunk is held against before it is seen whether one more is needed."""
MOST = 6
"""Behind a gate, a chunk is held against so many newer ones: those most similar to it."""


class TopicGate:
    """Lets through the pairs that could matter: both on the question's topic, and on one topic.

    A chunk that has nothing to do with the question can neither answer it nor contradict what
    does. `relevance` bounds a candidate's relevance as it was retrieved, `similarity` the cosine
    of the two chunks by this encoder.
    """

    def __init__(
        self, encoder: Encoder, *, similarity: float = 0.15, relevance: float = 0.1
    ) -> None:
        self._encoder = encoder
        self._similarity = similarity
        self._relevance = relevance

    def open_to(self, candidates: CandidateSet, pairs: list[Pair]) -> list[Pair]:
        """Returns the pairs of the set that are worth judging, the most similar first."""
        relevant = {i.chunk.id for i in candidates if i.relevance >= self._relevance}
        pairs = [(a, b) for a, b in pairs if a.id in relevant and b.id in relevant]
        if not pairs:
            return []
        texts = list(dict.fromkeys(chunk.text for pair in pairs for chunk in pair))
        row = {text: number for number, text in enumerate(texts)}
        vectors = self._encoder.encode(texts)
        rows = np.array([(row[a.text], row[b.text]) for a, b in pairs])
        # Row by row: in a matrix product a pair's cosine would depend on the pairs around it.
        similar = (vectors[rows[:, 0]] * vectors[rows[:, 1]]).sum(axis=1)
        order = np.argsort(-similar, kind="stable").tolist()
        return [pairs[n] for n in order if similar[n] >= self._similarity]


class PairwiseOracle:
    """Holds every chunk against newer ones, until one contradicts it.

    The newest come first; behind a gate, the most similar do, and after a few it is left at that.
    Pairs of two users and pairs with the same text can't conflict; what the gate stops is not
    judged, what the cache knows is not judged again. Since one witness is enough to shadow a
    chunk, the conflicts returned are those needed for the verdict, not all that exist; a pair
    that can't be ordered in time is always judged, so that it can be reported.
    """

    def __init__(
        self,
        classifier: PairClassifier,
        *,
        threshold: float = 0.5,
        gate: TopicGate | None = None,
        cache: VerdictCache | None = None,
    ) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise InvalidInputError(f"threshold={threshold}: pass a value from 0 to 1")
        self._classifier = classifier
        self._threshold = threshold
        self._gate = gate
        self._cache = cache
        self._scorer = classifier.id
        # What is qualified is the classifier at a threshold, not the classifier.
        own = getattr(classifier, "threshold", 0.5)
        self.id = classifier.id if threshold == own else f"{classifier.id}[>={threshold:g}]"

    def judge(self, candidates: CandidateSet) -> tuple[Conflict, ...]:
        """Returns the conflicts that decide which chunks stay."""
        waiting = self._witnesses(candidates)
        by_id = {item.chunk.id: item.chunk for item in candidates}
        found: list[Conflict] = []
        while waiting:
            batch = [(by_id[i], newer) for i, queue in waiting.items() for newer in queue[:ROUND]]
            shadowed: set[str] = set()
            for (older, newer), score in zip(
                batch, self._scores(candidates.query, batch), strict=True
            ):
                if score >= self._threshold:
                    found.append(
                        Conflict(older=older.id, newer=newer.id, score=score, oracle=self.id)
                    )
                    if older.precedes(newer):
                        shadowed.add(older.id)
            left = {
                i: [n for n in queue[ROUND:] if i not in shadowed or _unordered(by_id[i], n)]
                for i, queue in waiting.items()
            }
            waiting = {i: queue for i, queue in left.items() if queue}
        return tuple(found)

    def _witnesses(self, candidates: CandidateSet) -> dict[str, list[Chunk]]:
        """Returns, for each chunk's id, what it has to be held against, in this order."""
        pairs = possible_pairs(candidates)
        if self._gate is None:
            pairs.sort(key=lambda pair: by_time(pair[1]), reverse=True)
        else:
            pairs = self._gate.open_to(candidates, pairs)
        queues: dict[str, list[Chunk]] = {}  # by id: hashing whole chunks takes longer than this
        for older, newer in pairs:
            queue = queues.setdefault(older.id, [])
            if self._gate is None or len(queue) < MOST or _unordered(older, newer):
                queue.append(newer)
        return queues

    def _scores(self, question: str, pairs: list[Pair]) -> list[float]:
        keys = [(older.id, newer.id) for older, newer in pairs]
        known = {} if self._cache is None else self._cache.get(self._scorer, question, keys)
        missing = [n for n, key in enumerate(keys) if key not in known]
        scores = self._classifier.score(
            question, [(pairs[n][0].text, pairs[n][1].text) for n in missing]
        )
        fresh = {keys[n]: score for n, score in zip(missing, scores, strict=True)}
        if self._cache is not None and fresh:
            self._cache.put(self._scorer, question, fresh)
        return [known[key] if key in known else fresh[key] for key in keys]


def _unordered(a: Chunk, b: Chunk) -> bool:
    return a.precedes(b) is None
