"""Verdicts and conflict edges as points without vectors, in a collection beside the log."""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress

from gcmem.errors import StoreError
from gcmem.store.qdrant.server import Payload, Point, QdrantServer
from gcmem.types import OPTION, Conflict

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "gcmem:verdict")
INDEXES = {"older": "keyword", "newer": "keyword", "edge_of": "keyword"}
PAGE = 500


class QdrantVerdicts:
    """Keeps scores under ids made of what they are about, so that reading them is a lookup.

    A verdict can always be made again: one that can't be kept is simply not kept.
    """

    def __init__(self, server: QdrantServer) -> None:
        self._server = server
        self._name = f"{server.collection}-verdicts"
        if not server.exists(self._name):
            server.create(self._name, indexes=INDEXES)
        self.stored: Callable[[Sequence[str]], Container[str]] | None = None
        """Which of some ids the log has; the log sets it."""

    def get(
        self, oracle: str, question: str, pairs: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], float]:
        """Returns the known scores."""
        ids = [_verdict_id(oracle, question, older, newer) for older, newer in pairs]
        return {
            (point.payload["older"], point.payload["newer"]): point.payload["score"]
            for point in self._server.retrieve(self._name, ids)
        }

    def put(self, oracle: str, question: str, scores: Mapping[tuple[str, str], float]) -> None:
        """Keeps scores, if the server can be reached."""
        self._keep_if_stored(
            Point(
                _verdict_id(oracle, question, older, newer),
                {"older": older, "newer": newer, "score": score},
                [],
            )
            for (older, newer), score in scores.items()
            if math.isfinite(score)
        )

    def link(self, conflicts: Sequence[Conflict]) -> None:
        """Keeps conflicts as edges."""
        self._keep_if_stored(
            Point(
                _id("edge", c.oracle, c.older, c.newer),
                {"older": c.older, "newer": c.newer, "score": c.score, "edge_of": c.oracle},
                [],
            )
            for c in conflicts
        )

    def linked_up_to(self, oracle: str) -> int:
        """Returns the sequence number up to which an oracle has linked the chunks."""
        found = self._server.retrieve(self._name, [_id("cursor", oracle)])
        return next((int(point.payload["linked_up_to"]) for point in found), 0)

    def set_linked_up_to(self, oracle: str, seq: int) -> None:
        """Keeps how far an oracle has come; lost, the chunks behind it are judged once more."""
        payload: Payload = {"linked_up_to": seq, "cursor_of": oracle}
        self._keep([Point(_id("cursor", oracle), payload, [])])

    def witnesses(self, oracle: str, ids: Sequence[str]) -> dict[str, list[str]]:
        """Returns the newer ends of the known edges of the given chunks."""
        edges: list[tuple[str, str]] = []
        for start in range(0, len(ids), PAGE):
            where = {
                "must": [
                    {"key": "older", "match": {"any": list(ids[start : start + PAGE])}},
                    {"key": "edge_of", "match": {"value": oracle}},
                ]
            }
            found = self._server.everything(self._name, where)
            edges += [(payload["older"], payload["newer"]) for payload in found]
        witnesses: dict[str, list[str]] = {}
        for older, newer in sorted(edges):
            witnesses.setdefault(older, []).append(newer)
        return witnesses

    def forget(self, ids: Sequence[str]) -> None:
        """Erases whatever was said of the given chunks."""
        for start in range(0, len(ids), PAGE):
            page = {"any": list(ids[start : start + PAGE])}
            ends = [{"key": "older", "match": page}, {"key": "newer", "match": page}]
            self._server.delete(self._name, {"should": ends})

    def close(self) -> None:
        """Does nothing: the connection is the log's."""

    def _keep_if_stored(self, points: Iterable[Point]) -> None:
        """Looks the chunks up after the writing, since there are no transactions.

        A chunk that was forgotten before that is found to be gone; one that is forgotten later
        takes the verdict with it.
        """
        kept = list(points)
        self._keep(kept)
        ends = {i for p in kept for i in (p.payload["older"], p.payload["newer"])}
        chunk_ids = sorted(i for i in ends if not i.startswith(OPTION))
        if self.stored is not None and chunk_ids:
            with suppress(StoreError):
                stored = self.stored(chunk_ids)
                self.forget([i for i in chunk_ids if i not in stored])

    def _keep(self, points: Iterable[Point]) -> None:
        with suppress(StoreError):
            self._server.upsert(self._name, list(points))


def _verdict_id(oracle: str, question: str, older: str, newer: str) -> str:
    digest = hashlib.blake2b(question.casefold().encode(), digest_size=8).hexdigest()
    return _id("verdict", oracle, digest, older, newer)


def _id(*parts: str) -> str:
    # NUL is in no id, so that no two lists of parts give one name.
    return str(uuid.uuid5(NAMESPACE, "\x00".join(parts)))
