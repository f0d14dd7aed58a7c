"""LangGraph: a long-term store based on a `Memory` (`gcmem[langgraph]`)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import operator
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gcmem.errors import InvalidInputError, MissingExtraError
from gcmem.filters import make_filter
from gcmem.integrations.backfill import WIDEN_FACTOR
from gcmem.memory import Memory
from gcmem.message_fields import TEXT_KEYS
from gcmem.retrieve import retrieve
from gcmem.times import parse_time
from gcmem.types import MAX_SCOPE_ID_CHARS, Candidate, CandidateSet, Chunk, Turn

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
    )
except ModuleNotFoundError:
    raise MissingExtraError("langgraph", package="langgraph") from None

Namespace = tuple[str, ...]

KEY, NAMESPACE, VALUE, INDEXED, VERSION = (
    f"langgraph_{name}" for name in ("key", "namespace", "value", "indexed", "version")
)
LABEL = "langgraph_label_{}"
"""One metadata key per level, so that stores can filter by a prefix of the namespace."""
GENERIC_NAMES = {*TEXT_KEYS, "memory", "data", "fact"}
"""Field names that say nothing about their value, so they are not indexed."""

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": lambda value, bound: float(value) > float(bound),
    "$gte": lambda value, bound: float(value) >= float(bound),
    "$lt": lambda value, bound: float(value) < float(bound),
    "$lte": lambda value, bound: float(value) <= float(bound),
}


def user_of_namespace(namespace: Namespace) -> str:
    """Returns a user id for a namespace: its labels joined by slashes, or a hash if too long."""
    joined = "/".join(quote(label, safe="", errors="replace") for label in namespace)
    return joined if len(joined) <= MAX_SCOPE_ID_CHARS else _digest(joined)


class GCMemStore(BaseStore):
    """A LangGraph store whose searches leave out items that a newer item contradicts.

    A put appends to the memory, so replaced versions stay in the history; a delete erases an item
    with all its versions. Items are compared within a user, which `user_of` derives from the
    namespace. `fields` are the paths to index; `time_key` is the field that holds the event time.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        fields: Sequence[str] | None = None,
        time_key: str | None = None,
        user_of: Callable[[Namespace], str | None] = user_of_namespace,
    ) -> None:
        self.memory = memory
        self._fields = fields
        self._time_key = time_key
        self._user_of = user_of

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations. Reads see the state before the batch; the last put of a key wins."""
        ops = list(ops)
        results = [self._read(op) for op in ops]
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for op in puts.values():
            self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return _as_item(self._versions(_item_id(op.namespace, op.key)))
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise InvalidInputError(
            f"can't run a {type(op).__name__}: pass a get, put, search or list operation"
        )

    def _put(self, op: PutOp) -> None:
        item_id = _item_id(op.namespace, op.key)
        if op.value is None:
            self.memory.forget(run_id=item_id)
            return
        value = dict(op.value)
        texts = [] if op.index is False else _texts(value, op.index or self._fields)
        when = value.get(self._time_key) if self._time_key else None
        metadata = {
            KEY: op.key,
            NAMESPACE: list(op.namespace),
            VALUE: value,
            INDEXED: bool(texts),
            VERSION: uuid.uuid4().hex,
            **{LABEL.format(level): label for level, label in enumerate(op.namespace)},
        }
        self.memory.add(
            # Every chunk in the log needs a text, even for an item that is not indexed.
            [Turn(text=text) for text in texts or [op.key.strip() or "item"]],
            user_id=self._user_of(op.namespace),
            run_id=item_id,
            at=None if when is None else parse_time(when),
            metadata=metadata,
        )

    def _versions(self, item_id: str) -> tuple[Chunk, ...]:
        return self.memory.get_all(run_id=item_id)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        end = op.offset + op.limit
        if not (op.query and op.query.strip()):
            return self._listed(op)[op.offset : end]
        found = self._by_meaning(op, end)
        if len(found) < end:  # as in LangGraph's own store, items without index fill the rest
            found += self._listed(op, indexed=False)
        return found[op.offset : end]

    def _listed(self, op: SearchOp, *, indexed: bool | None = None) -> list[SearchItem]:
        """Returns the matching items, latest put first."""
        chunks = self.memory.get_all(filters=_namespace_filter(op.namespace_prefix))
        versions: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            versions.setdefault(_item_of(chunk), []).append(chunk)
        newest_first = sorted(versions.values(), key=lambda chunks: -_seq(chunks[-1]))
        return [
            _as_search_item(chunks)
            for chunks in newest_first
            if _matches(chunks[-1].metadata[VALUE], op.filter)
            and indexed in (None, chunks[-1].metadata[INDEXED])
        ]

    def _by_meaning(self, op: SearchOp, wanted: int) -> list[SearchItem]:
        """Returns the items that are still true, most similar first."""
        items = self._similar(op, wanted * self.memory.settings.overfetch * WIDEN_FACTOR)
        for width in (1, WIDEN_FACTOR):
            weighed = list(items.values())[: wanted * self.memory.settings.overfetch * width]
            kept = self._resolve(op.query or "", [hit for hits in weighed for hit in hits])
            if len(kept) >= wanted or len(weighed) == len(items):
                break
        return [
            _as_search_item(self._versions(item_id), score=score) for item_id, score in kept.items()
        ]

    def _similar(self, op: SearchOp, enough: int) -> dict[str, list[Candidate]]:
        """Increases k until enough items are found: replaced versions and filters drop some."""
        where = make_filter(
            None, None, None, None, None, {**_namespace_filter(op.namespace_prefix), INDEXED: True}
        )
        settings, k = self.memory.settings, max(1, enough)
        while True:
            hits = retrieve(
                self.memory.store,
                query=op.query or "",
                queries=self.memory.encoder.encode([op.query or ""]),
                k=k,
                where=where,
                strategy=settings.strategy,
                frontier=settings.frontier,
            )
            items: dict[str, list[Candidate]] = {}
            for hit in hits:
                versions = self._versions(_item_of(hit.chunk))
                if versions and _is_current(hit.chunk, versions):
                    items.setdefault(_item_of(hit.chunk), []).append(hit)
            live = {
                item_id: found
                for item_id, found in items.items()
                if _matches(found[0].chunk.metadata[VALUE], op.filter)
            }
            if len(live) >= enough or len(hits) < k:
                return live
            k *= WIDEN_FACTOR

    def _resolve(self, query: str, hits: Sequence[Candidate]) -> dict[str, float]:
        """Returns the items with at least one chunk that is still true, and their best score."""
        candidates = CandidateSet(query=query.strip(), items=tuple(hits))
        scores: dict[str, float] = {}
        for hit in self.memory.resolve(candidates).kept:
            scores[_item_of(hit.chunk)] = max(hit.relevance, scores.get(_item_of(hit.chunk), -1.0))
        return dict(sorted(scores.items(), key=lambda scored: -scored[1]))

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        chunks = self.memory.get_all(filters=_namespace_filter(()))
        found = {tuple(chunk.metadata[NAMESPACE]) for chunk in chunks}
        conditions = op.match_conditions or ()
        matching = (
            n for n in found if all(_matches_path(n, condition) for condition in conditions)
        )
        return sorted({n[: op.max_depth] for n in matching})[op.offset : op.offset + op.limit]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _item_id(namespace: Namespace, key: str) -> str:
    return "langgraph:" + _digest(json.dumps([list(namespace), key]))


def _item_of(chunk: Chunk) -> str:
    assert chunk.scope.run_id is not None
    return chunk.scope.run_id


def _seq(chunk: Chunk) -> int:
    return chunk.seq or 0


def _namespace_filter(prefix: Namespace) -> dict[str, Any]:
    """Returns the metadata filter for a namespace and everything below it."""
    labels = {LABEL.format(level): label for level, label in enumerate(prefix)}
    return labels or {INDEXED: [True, False]}


def _is_current(chunk: Chunk, versions: Sequence[Chunk]) -> bool:
    """Returns whether a chunk belongs to the last put of its item."""
    return bool(chunk.metadata[VERSION] == versions[-1].metadata[VERSION])


def _as_item(versions: Sequence[Chunk]) -> Item | None:
    return Item(**_fields_of(versions)) if versions else None


def _as_search_item(versions: Sequence[Chunk], *, score: float | None = None) -> SearchItem:
    return SearchItem(**_fields_of(versions), score=score)


def _fields_of(versions: Sequence[Chunk]) -> dict[str, Any]:
    last = versions[-1]
    return {
        "namespace": tuple(last.metadata[NAMESPACE]),
        "key": last.metadata[KEY],
        "value": last.metadata[VALUE],
        "created_at": versions[0].recorded_at,
        "updated_at": last.recorded_at,
    }


def _texts(value: Mapping[str, Any], fields: Sequence[str] | None) -> list[str]:
    """Returns the texts to index: those at the paths, or the whole value as plain lines."""
    if fields is None:
        found = ["\n".join(_plain_lines(value))]
    else:
        found = [text for path in fields for text in get_text_at_path(value, path)]
    return [text for text in found if text.strip()]


def _plain_lines(value: Any, name: str = "") -> list[str]:
    """Returns a value as plain lines, since the oracle can't read JSON well."""
    if isinstance(value, Mapping):
        return [line for key, inner in value.items() for line in _plain_lines(inner, str(key))]
    if isinstance(value, (list, tuple)):
        return [line for inner in value for line in _plain_lines(inner, name)]
    if value is None or value == "":
        return []
    return [
        str(value) if not name or name in GENERIC_NAMES else f"{name.replace('_', ' ')}: {value}"
    ]


def _matches(value: Any, condition: Any) -> bool:
    """Returns whether a value matches a filter: equal values or operators, at any depth."""
    if condition is None:
        return True
    return all(_equals(value.get(key), wanted) for key, wanted in condition.items())


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_compare(value, name, bound) for name, bound in wanted.items())
        return isinstance(value, Mapping) and _matches(value, wanted)
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(wanted)
            and all(map(_equals, value, wanted))
        )
    return bool(value == wanted)


def _compare(value: Any, name: str, bound: Any) -> bool:
    if name not in COMPARISONS:
        raise InvalidInputError(f"filter operator {name!r}: use one of {', '.join(COMPARISONS)}")
    try:
        return COMPARISONS[name](value, bound)
    except (TypeError, ValueError):
        return False  # a value that can't be compared does not match


def _matches_path(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(label in ("*", actual) for label, actual in zip(path, part, strict=True))
