"""OpenTelemetry spans by the GenAI conventions for memory; without the API, nothing happens.

The conventions are in development and have no Python constants yet, so the names are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from gcmem import __version__

Operation = Literal["search_memory", "upsert_memory", "update_memory", "delete_memory"]

OPERATION_NAME = "gen_ai.operation.name"
PROVIDER_NAME = "gen_ai.provider.name"
STORE_ID = "gen_ai.memory.store.id"
RECORD_ID = "gen_ai.memory.record.id"
QUERY_TEXT = "gen_ai.memory.query.text"
AGENT_ID = "gen_ai.agent.id"
CONVERSATION_ID = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"
KEPT = "gcmem.kept"
SHADOWS = "gcmem.shadows"
CHUNKS = "gcmem.chunks"


class Spans:
    """Opens one span per operation on the memory; with `contents` it includes the query."""

    def __init__(self, *, store_id: str, contents: bool = False) -> None:
        self._store_id = store_id
        self._contents = contents
        try:
            from opentelemetry import propagate, trace
        except ModuleNotFoundError:
            self._trace = self._propagate = None
        else:
            self._trace, self._propagate = trace, propagate

    @contextmanager
    def open(
        self,
        operation: Operation,
        *,
        headers: Mapping[str, str],
        query: str | None = None,
        record_id: str | None = None,
        agent_id: str | None = None,
        session: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yields a dict whose items become attributes when the span ends."""
        outcome: dict[str, Any] = {}
        if self._trace is None or self._propagate is None:
            yield outcome
            return
        attributes = {
            OPERATION_NAME: operation,
            PROVIDER_NAME: "gcmem",
            STORE_ID: self._store_id,
            QUERY_TEXT: query if self._contents else None,
            RECORD_ID: record_id,
            AGENT_ID: agent_id,
            CONVERSATION_ID: session,
        }
        # If the framework has opened a span for the request, ours is its child.
        is_traced = self._trace.get_current_span().get_span_context().is_valid
        with self._trace.get_tracer("gcmem", __version__).start_as_current_span(
            f"{operation} {self._store_id}",
            context=None if is_traced else self._propagate.extract(headers),
            kind=self._trace.SpanKind.CLIENT,
            attributes={name: value for name, value in attributes.items() if value is not None},
            # An error's message may quote a memory; its type does not.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield outcome
            except Exception as error:
                span.set_attribute(ERROR_TYPE, type(error).__name__)
                span.set_status(self._trace.StatusCode.ERROR)
                raise
            finally:
                span.set_attributes(outcome)
