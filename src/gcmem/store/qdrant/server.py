"""The one file that speaks to Qdrant's client: addresses, collections, points, clear errors.

Filters are passed as the JSON of Qdrant's REST interface, so that no other file needs the client.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gcmem.errors import MissingExtraError, StoreError, StoreUnavailableError
from gcmem.private_files import make_private_folder
from gcmem.store.qdrant.address import IN_MEMORY, QdrantAddress, QdrantSettings

OLDEST_SERVER = (1, 16)
"""Conditional upserts, with which the mark is moved, came with this version."""
VECTOR = "text"
CUT_OFF = ("RemoteProtocolError", "ReadError", "WriteError")
UPSERT_PAGE = 256
ID_PAGE = 1000

Filter = Mapping[str, Any]
Payload = dict[str, Any]
T = TypeVar("T")


class CollectionMissingError(StoreUnavailableError):
    """A collection is not there, or not any more."""


class Point(NamedTuple):
    """What is stored under one number; a point without a vector has an empty one."""

    id: int
    payload: Payload
    vector: list[float]


class Scored(NamedTuple):
    """A search hit."""

    payload: Payload
    score: float


class QdrantServer:
    """A Qdrant server, or the client's local mode, with gcmem's errors.

    Every write waits until it is applied, and goes through the shard's leader, so that all
    replicas apply conditional writes in the same order.
    """

    def __init__(self, address: QdrantAddress, settings: QdrantSettings) -> None:
        self.location = address.location
        self.collection = address.collection
        self.is_local = address.path is not None
        self._settings = settings
        self._api_key = address.api_key
        self._consistency: str | None = None
        # The local mode keeps plain lists and dicts: two calls at once would tear them.
        self._turn = threading.RLock() if self.is_local else nullcontext()
        self._sdk = _import_sdk()
        with self._translated():
            self._client = self._connect(address)
        self.models: Any = self._sdk.models
        try:
            self._check_version()
        except BaseException:
            self.close()
            raise

    def _connect(self, address: QdrantAddress) -> Any:
        if address.path == IN_MEMORY:
            return self._sdk.QdrantClient(IN_MEMORY)
        if address.path is not None:
            make_private_folder(Path(address.path))
            return self._sdk.QdrantClient(path=address.path, force_disable_check_same_thread=True)
        return self._sdk.QdrantClient(
            url=address.url,
            api_key=address.api_key,
            timeout=self._settings.timeout_s,
            check_compatibility=False,
        )

    def _check_version(self) -> None:
        if self.is_local:
            return
        version: str = self._call("info").version
        numbers = re.match(r"(\d+)\.(\d+)", version)
        if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_SERVER:
            raise StoreUnavailableError(
                f"{self.location} runs Qdrant {version}; gcmem needs "
                f"{'.'.join(map(str, OLDEST_SERVER))} or newer, which has conditional writes"
            )

    def _call(self, method: str, **arguments: Any) -> Any:
        act = getattr(self._client, method)
        with self._turn, self._translated():
            try:
                return act(**arguments)
            except self._sdk.http.exceptions.ResponseHandlingException as error:
                # A server that was restarted has closed the connections that are kept for reuse.
                # All requests made here can be repeated: the second time they change nothing.
                if type(error.source).__name__ not in CUT_OFF:
                    raise
                return act(**arguments)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns the client's errors into gcmem's; a message never holds the key."""
        exceptions = self._sdk.http.exceptions
        exhausted = self._sdk.common.client_exceptions.ResourceExhaustedResponse
        try:
            yield
        except exceptions.UnexpectedResponse as error:
            raise self._refusal(error.status_code or 0, error.content) from None
        except exhausted as error:
            raise StoreUnavailableError(
                f"{self.location} is over its limits; try again in {error.retry_after_s} s"
            ) from None
        except exceptions.ResponseHandlingException as error:
            raise self._unreachable(error.source) from None
        except (RuntimeError, OSError) as error:
            raise StoreUnavailableError(
                f"can't use {self.location}: {self._clean(error)}; check that the folder can be "
                "written and that nothing else has it open"
            ) from None
        except ValueError as error:
            if re.search(r"[Cc]ollection .* not found", str(error)):
                raise CollectionMissingError(f"{self.location}: {self._clean(error)}") from None
            raise StoreError(f"{self.location} refused the request: {self._clean(error)}") from None

    def _refusal(self, status: int, content: bytes) -> StoreError:
        said = self._clean(content.decode("utf-8", "replace"))
        if status in (401, 403):
            return StoreUnavailableError(
                f"{self.location} rejected the API key; pass one that may read and write"
            )
        if status == 404 and "ollection" in said:
            return CollectionMissingError(f"{self.location}: {said}")
        if status == 404 or status >= 500 or status in (408, 429):
            return StoreUnavailableError(
                f"{self.location} answered {status} ({said}); check the server and its log, "
                "then try again"
            )
        return StoreError(f"{self.location} refused the request with {status}: {said}")

    def _unreachable(self, source: Exception) -> StoreUnavailableError:
        if "Timeout" in type(source).__name__:
            return StoreUnavailableError(
                f"{self.location} did not answer within {self._settings.timeout_s} s; "
                "try again, or raise timeout_s"
            )
        return StoreUnavailableError(
            f"can't reach {self.location}: {self._clean(source)}; "
            "check the address and that the server runs"
        )

    def _clean(self, said: object) -> str:
        text = " ".join(str(said).split())[:200]
        return text.replace(self._api_key, "***") if self._api_key else text

    def exists(self, collection: str) -> bool:
        """Tells whether there is a collection, or an alias, of that name."""
        return bool(self._call("collection_exists", collection_name=collection))

    def create(self, collection: str, *, dimensions: int, indexes: Mapping[str, Any]) -> None:
        """Makes a collection with payload indexes; one that somebody else just made will do."""
        replicas = self._settings.replication_factor
        distance = self.models.Distance.COSINE
        try:
            self._call(
                "create_collection",
                collection_name=collection,
                # By name: only then may a point, like the mark, have no vector.
                vectors_config={
                    VECTOR: self.models.VectorParams(size=dimensions, distance=distance)
                },
                shard_number=self._settings.shard_number,
                replication_factor=replicas,
                write_consistency_factor=self._settings.write_consistency_factor
                or (replicas // 2 + 1 if replicas else None),
            )
        except StoreError:
            if not self.exists(collection):
                raise
        if not self.is_local:  # the local mode has no indexes, and warns about them
            for name, schema in indexes.items():
                self._call(
                    "create_payload_index",
                    collection_name=collection,
                    field_name=name,
                    field_schema=schema,
                    wait=True,
                )

    def aliased(self, alias: str) -> str | None:
        """Returns the collection that an alias points to, if there is one."""
        aliases = self._call("get_aliases").aliases
        return next((a.collection_name for a in aliases if a.alias_name == alias), None)

    def read_from_majority(self, collection: str) -> None:
        """Asks most replicas from now on, if a collection has several."""
        if not self.is_local:
            info = self._call("get_collection", collection_name=collection)
            if (info.config.params.replication_factor or 1) > 1:
                self._consistency = "majority"

    def drop(self, collection: str) -> None:
        """Removes a collection, if it is there."""
        self._call("delete_collection", collection_name=collection)

    def point_alias(self, alias: str, collection: str) -> None:
        """Makes `alias` another name of `collection`, and of no other any more."""
        models = self.models
        create = models.CreateAlias(collection_name=collection, alias_name=alias)
        # Deleting an alias that does not exist is no error, and both happen at once.
        self._call(
            "update_collection_aliases",
            change_aliases_operations=[
                models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)),
                models.CreateAliasOperation(create_alias=create),
            ],
        )

    def upsert(
        self, collection: str, points: Sequence[Point], *, only_if: Filter | None = None
    ) -> None:
        """Writes points, page by page; existing ones only if they match `only_if`."""
        for page in _pages(points, UPSERT_PAGE):
            self._call(
                "upsert",
                collection_name=collection,
                points=[
                    self.models.PointStruct(
                        id=p.id, vector={VECTOR: p.vector} if p.vector else {}, payload=p.payload
                    )
                    for p in page
                ],
                update_filter=self._filter(only_if),
                wait=True,
                ordering=self.models.WriteOrdering.STRONG,
            )

    def retrieve(
        self, collection: str, ids: Sequence[int], *, vectors: bool = False
    ) -> Iterator[Point]:
        """Yields the points that exist, with their vectors if asked for."""
        for page in _pages(ids, ID_PAGE):
            for found in self._call(
                "retrieve",
                collection_name=collection,
                ids=list(page),
                with_payload=not vectors,
                with_vectors=vectors,
                **self._reading(),
            ):
                vector = (found.vector or {}).get(VECTOR, [])
                yield Point(found.id, found.payload or {}, vector)

    def everything(self, collection: str, where: Filter) -> Iterator[Payload]:
        """Yields the payloads of all matching points, in no particular order."""
        offset: Any = None
        while True:
            records, offset = self._call(
                "scroll",
                collection_name=collection,
                scroll_filter=self._filter(where),
                limit=ID_PAGE,
                offset=offset,
                with_payload=True,
                **self._reading(),
            )
            yield from (record.payload for record in records)
            if offset is None:
                return

    def count(self, collection: str, where: Filter, *, exact: bool = True) -> int:
        """Returns how many points match; estimated from the indexes unless `exact`."""
        counted = self._call(
            "count", collection_name=collection, count_filter=self._filter(where), exact=exact
        )
        return int(counted.count)

    def delete(self, collection: str, ids: Sequence[int]) -> None:
        """Erases points."""
        for page in _pages(ids, ID_PAGE):
            self._call(
                "delete",
                collection_name=collection,
                points_selector=list(page),
                wait=True,
                ordering=self.models.WriteOrdering.STRONG,
            )

    def query(
        self,
        collection: str,
        vectors: Sequence[list[float]],
        where: Filter,
        *,
        limit: int,
        exact: bool,
        payload: list[str],
    ) -> list[list[Scored]]:
        """Returns the most similar points of each vector, the best first."""
        models = self.models
        params = None if self.is_local else models.SearchParams(exact=exact)
        requests = [
            models.QueryRequest(
                query=vector,
                using=VECTOR,
                filter=self._filter(where),
                limit=limit,
                params=params,
                with_payload=payload,
            )
            for vector in vectors
        ]
        responses = self._call(
            "query_batch_points",
            collection_name=collection,
            requests=requests,
            **self._reading(),
        )
        return [[Scored(hit.payload, hit.score) for hit in r.points] for r in responses]

    def close(self) -> None:
        """Closes the connections, or the folder."""
        with self._turn:
            self._client.close()

    def _reading(self) -> dict[str, Any]:
        return {"consistency": self._consistency} if self._consistency else {}

    def _filter(self, where: Filter | None) -> Any:
        return None if where is None else self.models.Filter.model_validate(where)


def _pages(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _import_sdk() -> Any:
    try:
        import qdrant_client
        import qdrant_client.common.client_exceptions
        import qdrant_client.http.exceptions
    except ImportError:
        raise MissingExtraError("qdrant", package="qdrant-client") from None
    return qdrant_client
