"""Limits per connection and per address, which uvicorn does not have."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gcmem.serve.http.limits import Limits

CLOSING_DELAY_S = 0.5
"""Seconds that a stopping server waits for a request that may be on its way."""
MIN_READ_BYTES = 65_536
"""A client must read at least this much of its reply per `write_timeout_s`, or all of it."""
RESERVED_FILES = 128
"""Open files that are reserved for the store, the models and the logs."""


def guarded_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Returns uvicorn's HTTP protocol with limits, which all its connections share."""

    class GuardedProtocol(_Guarded):
        pass

    GuardedProtocol.limits = replace(limits, connections=_possible_connections(limits))
    GuardedProtocol.idle = IdleConnections(limits)
    return GuardedProtocol


def _possible_connections(limits: Limits) -> int:
    """Returns the most open connections, fewer than wanted if the system allows fewer files."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return limits.connections
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return limits.connections
    return max(1, min(limits.connections, allowed - RESERVED_FILES))


class IdleConnections:
    """The connections that wait for their client, by address, the longest waiting first."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: OrderedDict[_Guarded, str] = OrderedDict()
        self._by_address: dict[str, OrderedDict[_Guarded, None]] = {}

    def add(self, connection: _Guarded, address: str) -> None:
        """Adds a waiting connection. If its address has too many, drops the oldest of them."""
        self.remove(connection)
        self._waiting[connection] = address
        of_address = self._by_address.setdefault(address, OrderedDict())
        of_address[connection] = None
        if len(of_address) > self._limits.idle_per_address:
            self._drop(next(iter(of_address)))

    def remove(self, connection: _Guarded) -> None:
        """Removes a connection that has sent a complete request, or is gone."""
        address = self._waiting.pop(connection, None)
        if address is None:
            return
        of_address = self._by_address[address]
        del of_address[connection]
        if not of_address:
            del self._by_address[address]

    def drop_one(self) -> bool:
        """Drops the connection that has waited longest; tells whether there was one."""
        oldest = next(iter(self._waiting), None)
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None

    def _drop(self, connection: _Guarded) -> None:
        self.remove(connection)
        connection.drop()


class _HeadTooLargeError(Exception):
    """Stops the parser."""


class _Guarded(HttpToolsProtocol):
    """One connection, with limits on the head of a request and on the time to wait for the client.

    It waits until a request is complete, and again after the reply.
    """

    limits: Limits
    idle: IdleConnections

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_in_head = False
        self._has_passed_head = False
        self._is_refused = False
        self._is_head_too_large = False
        self._parsed_bytes = self._fed_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def drop(self) -> None:
        """Closes the connection at once, even if data is still to be sent."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accepts the connection. If there are too many, drops one that only waits."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and not self.idle.drop_one():
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections; try again.")
            return
        self.idle.add(self, self._address)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self.idle.remove(self)
        self._stop_head_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses the data, unless the head of the request is too large."""
        if self._is_refused:
            return
        if not self._is_answering:
            self._start_head_timer()
        self._has_passed_head = False
        super().data_received(data)
        if self._is_in_head and not self._has_passed_head and not self._is_refused:
            # The parser buffers a header until it is complete, so buffered bytes count too.
            self._fed_bytes += len(data)
            if self._fed_bytes > self.limits.header_bytes:
                self._refuse_head()

    def on_message_begin(self) -> None:
        """Starts to count the bytes of a request's head."""
        self._is_in_head = True
        self._parsed_bytes = self._fed_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Counts a part of the path."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Counts a header."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Starts the request: its head is complete."""
        self._is_in_head = False
        self._has_passed_head = True
        self._stop_head_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Ends the wait for the client: the request is complete."""
        self._has_passed_head = True
        super().on_message_complete()
        self.idle.remove(self)

    def on_response_complete(self) -> None:
        """Waits for the next request, or until the client has read the reply."""
        super().on_response_complete()
        self._watch_reading()
        if not self.transport.is_closing() and not self._is_answering:
            self.idle.add(self, self._address)

    def send_400_response(self, msg: str) -> None:
        """Answers a request that can't be parsed, or whose head is too large."""
        if self._is_head_too_large:
            self._refuse_head()
        else:
            self._is_refused = True
            super().send_400_response(msg)

    def shutdown(self) -> None:
        """Closes the connection when the server stops; a request on its way still gets a reply."""
        if self._is_answering:
            super().shutdown()
        else:
            self.loop.call_later(CLOSING_DELAY_S, super().shutdown)

    def pause_writing(self) -> None:
        """Waits for the client to read, but not forever."""
        super().pause_writing()
        self._watch_reading()

    def _count(self, count: int) -> None:
        self._parsed_bytes += count
        has_too_many = len(self.headers) >= self.limits.headers
        if has_too_many or self._parsed_bytes > self.limits.header_bytes:
            self._is_head_too_large = True
            raise _HeadTooLargeError

    def _refuse_head(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"At most {self.limits.header_bytes} bytes and {self.limits.headers} headers.",
        )

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answers on behalf of the application, and closes the connection."""
        self._is_refused = True
        self._stop_head_timer()
        if self._is_answering:  # another reply is under way: nothing may come between
            self.drop()
            return
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(message)}\r\nConnection: close\r\n\r\n{message}".encode()
        )
        self.transport.close()
        self._watch_reading()

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(
                self.limits.header_timeout_s, self._on_head_timeout
            )

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if self._is_answering:
            return
        if self._is_in_head:
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The headers took longer than {self.limits.header_timeout_s:g} s.",
            )
        else:
            self.transport.close()

    def _watch_reading(self) -> None:
        """Drops the connection if its client does not read what was sent to it."""
        self._unread_bytes = self.transport.get_write_buffer_size()
        if self._unread_bytes and self._write_timer is None:
            self._write_timer = self.loop.call_later(
                self.limits.write_timeout_s, self._on_write_timeout
            )

    def _on_write_timeout(self) -> None:
        self._write_timer = None
        unread = self.transport.get_write_buffer_size()
        if unread and self._unread_bytes - unread < MIN_READ_BYTES:
            self.drop()
        else:
            self._watch_reading()
