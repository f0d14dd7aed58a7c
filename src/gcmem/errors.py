"""Every error that gcmem raises on purpose.

GCMemError
├── InvalidInputError (ValueError)     what the caller passed can't be used
│   ├── NaiveTimeError                 a datetime without a timezone
│   ├── FutureTimeError                an event time too far ahead of the clock
│   ├── InvalidTextError               empty, too long, NUL, lone surrogate
│   ├── InvalidScopeError              a scope id that is not a usable string
│   ├── InvalidFilterError             a metadata filter that no store can answer
│   ├── SessionFormatError             a session file that can't be read
│   ├── TransferFormatError            a file of chunks that can't be imported
│   │   └── BadRowError                one row of it
│   └── DatasetNotFoundError           a benchmark's data is not at its path
├── ChunkNotFoundError (KeyError)      no such chunk in this scope
├── TrustError                         the chunk is trusted more than the caller
├── MissingExtraError (ImportError)    an optional dependency is not installed
├── StoreError                         the store can't do what was asked
│   ├── StoreUnavailableError          can't be opened, written or reached
│   │   └── StoreReplacedError         its file was deleted or replaced while it was open
│   ├── BackupUnsupportedError         the server has its own backup tool
│   ├── StoreCorruptError              the file is not a gcmem store, or is damaged
│   ├── StoreVersionError              written by a newer gcmem
│   ├── EncoderMismatchError           built with another encoder
│   ├── IndexElsewhereError            its vectors are in an index that the URL does not name
│   └── VerificationError              source and target of a move differ
├── EncoderError                       an encoder returned vectors that can't be used
├── ServeError                         the server rejects a request, or can't start
│   ├── NotAuthenticatedError          the key is missing, unknown or revoked
│   ├── ForbiddenError                 the key may not do this, or not in this scope
│   ├── RateLimitedError               too many requests from one key
│   ├── OverloadedError                too many requests at once
│   ├── NoKeysError                    the key file contains no key
│   ├── StoppingError                  the server is being stopped
│   └── PublicAddressError             a public address without any key
├── DeadlineExceededError              the work took longer than allowed
├── AbandonedError                     the work was stopped: nobody waits for the result
└── ModelError                         a language model endpoint failed
    ├── ModelUnavailableError          refused, timed out, rate limited
    ├── ModelAuthenticationError       the key was rejected
    └── ModelResponseError             the answer was not what was asked for
        └── ModelNotFoundError         no such model or path at the endpoint
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path


class GCMemError(Exception):
    """The root of every error that gcmem raises on purpose."""


class InvalidInputError(GCMemError, ValueError):
    """What the caller passed can't be used; the message says what to pass instead."""


class NaiveTimeError(InvalidInputError):
    """A datetime without a timezone was passed where the order of events depends on it."""

    def __init__(self, name: str, value: datetime) -> None:
        super().__init__(
            f"{name}={value!r} has no timezone; pass an aware datetime, "
            f"for example datetime.now(timezone.utc) or {name}.replace(tzinfo=timezone.utc)"
        )


class FutureTimeError(InvalidInputError):
    """An event time is further ahead of the clock than the settings allow."""

    def __init__(self, at: datetime, *, now: datetime, allowed: timedelta) -> None:
        super().__init__(
            f"event time {at.isoformat()} is more than {allowed} after now "
            f"({now.isoformat(timespec='seconds')}). Correct it, or allow any event time with "
            "Settings(max_future=None)"
        )


class InvalidTextError(InvalidInputError):
    """A text is empty, too long, or contains characters that a store can't keep."""


class InvalidScopeError(InvalidInputError):
    """A user_id, agent_id or run_id is not a usable string."""


class InvalidFilterError(InvalidInputError):
    """A metadata filter uses a key or value that can't be matched."""


class SessionFormatError(InvalidInputError):
    """A session file is not in a format that gcmem reads."""


class TransferFormatError(InvalidInputError):
    """A file of chunks is not in a format that gcmem imports, or it is damaged."""


class BadRowError(TransferFormatError):
    """One row of a file or a store can't be moved; all batches before it are stored."""

    def __init__(self, line: int, reason: str, *, file: str) -> None:
        super().__init__(
            f"{file}, line {line}: {reason}; correct it and run the command again (rows already "
            "stored are skipped), or leave such rows out with --skip-bad"
        )
        self.line = line


class DatasetNotFoundError(InvalidInputError):
    """The data of a benchmark is not at the path; the message says where to download it."""

    def __init__(self, name: str, *, path: Path, wanted: str, download: str) -> None:
        super().__init__(f"no {name} data at {path}: expected {wanted}; get it from {download}")
        self.name = name
        self.path = path


class ChunkNotFoundError(GCMemError, KeyError):
    """No chunk with that id exists in the given scope."""

    def __init__(self, chunk_id: str) -> None:
        super().__init__(chunk_id)
        self.chunk_id = chunk_id

    def __str__(self) -> str:
        return f"no chunk {self.chunk_id!r} in this scope"


class TrustError(GCMemError):
    """The caller may not change or erase the chunk, because its trust level is higher."""

    def __init__(self, chunk_id: str, *, trust: int, allowed: int) -> None:
        super().__init__(
            f"chunk {chunk_id!r} has trust {trust}, and this caller may only erase or change "
            f"chunks of trust {allowed} or below; use a trusted key or server"
        )
        self.chunk_id = chunk_id


class MissingExtraError(GCMemError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, extra: str, *, package: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'gcmem[{extra}]'")
        self.extra = extra


class StoreError(GCMemError):
    """The store can't do what was asked."""


class StoreUnavailableError(StoreError):
    """The store can't be opened, written or reached."""


class StoreReplacedError(StoreUnavailableError):
    """The store's file was deleted, moved or replaced while the store was open."""


class BackupUnsupportedError(StoreError):
    """gcmem can't back up this store; the message names the tools that can."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"gcmem can't back up {location}: use the server's own tool (PostgreSQL: pg_dump or "
            "pg_basebackup; Qdrant: snapshots of its three collections), or write the chunks into "
            "a file: gcmem export FILE"
        )


class StoreCorruptError(StoreError):
    """The file is not a gcmem store, or it is damaged."""


class StoreVersionError(StoreError):
    """The store was written by a newer gcmem than this one."""


class IndexElsewhereError(StoreError):
    """The vectors of a store are in another index, which the URL does not name."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"the vectors of {location} are in another index: add ?index= and its URL, or build "
            f"them here again with gcmem reindex --store {location}"
        )


class EncoderMismatchError(StoreError):
    """The store was built with a different encoder than the one in use."""

    def __init__(self, *, stored: str, given: str, location: str) -> None:
        option = "--store" if "://" in location else "--path"
        super().__init__(
            f"{location} was built with encoder {stored!r}, but {given!r} is in use; open it with "
            f"{stored!r}, or re-embed it: gcmem.reindex({location!r}, encoder=...), or "
            f"gcmem reindex {option} {location} --encoder {_command_line_name(given)}"
        )
        self.stored = stored
        self.given = given


def _command_line_name(encoder_id: str) -> str:
    """Returns what `--encoder` takes for the encoder with this id."""
    kind = encoder_id.partition(":")[0]
    if kind.startswith("gcmem-encoder@"):
        return "local"
    return {
        "multilingual": "multilingual",
        "onnx": "onnx:FOLDER",
        "gguf": "gguf:FILE",
    }.get(kind, "NAME")


class VerificationError(StoreError):
    """Source and target of a move differ; `differences` lists how."""

    def __init__(self, summary: str, *, differences: tuple[str, ...]) -> None:
        super().__init__("; ".join((summary, *differences)))
        self.differences = differences


class EncoderError(GCMemError):
    """An encoder returned vectors that can't be stored or compared; the message names it."""

    def __init__(self, encoder_id: str, reason: str) -> None:
        super().__init__(
            f"encoder {encoder_id!r} {reason}; an encoder must return one finite row of length 1 "
            "(L2 norm) for each text, always with the same number of dimensions"
        )
        self.encoder_id = encoder_id
        self.reason = reason


class StoreDegradedWarning(UserWarning):
    """A part of the store can't be reached; answers come from the log and stay correct."""


class ErasurePendingWarning(UserWarning):
    """Forgotten chunks can't be read, but some of their bytes are still in the store's files."""


class UnqualifiedOracleWarning(UserWarning):
    """The oracle may only annotate: no measurement shows that it may remove chunks."""


class ServeError(GCMemError):
    """The server rejects a request, or can't start."""


class NotAuthenticatedError(ServeError):
    """The API key is missing, unknown or revoked."""


class ForbiddenError(ServeError):
    """The API key may not do this, or not in this scope."""


class RateLimitedError(ServeError):
    """One key made too many requests; the next is allowed after `retry_after_s`."""

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__(f"too many requests; try again in {retry_after_s:.2f} s")
        self.retry_after_s = retry_after_s


class OverloadedError(ServeError):
    """Too many requests are waiting; try again shortly."""


class NoKeysError(ServeError):
    """The server's key file contains no API key."""

    def __init__(self, keys: Path) -> None:
        super().__init__(
            f"there is no key in {keys}; create one: gcmem keys create NAME --keys {keys}, or "
            "leave out --keys to serve only this machine, without keys"
        )


class StoppingError(ServeError):
    """The server is stopping and accepts no more work; try again when it is back."""


class PublicAddressError(ServeError):
    """The server would listen on a public address without any API key."""

    def __init__(self, host: str, *, keys: Path) -> None:
        super().__init__(
            f"others can reach {host}, and {keys} contains no key; create one: gcmem keys "
            f"create NAME --keys {keys}, or listen on 127.0.0.1"
        )
        self.host = host


class DeadlineExceededError(GCMemError):
    """The work took longer than allowed and was stopped."""

    def __init__(self, *, seconds: float) -> None:
        super().__init__(
            f"the work took longer than {seconds:g} s and was stopped; ask for less at once"
        )
        self.seconds = seconds


class AbandonedError(GCMemError):
    """The work was stopped because nobody waits for the result."""


class ModelError(GCMemError):
    """A language model endpoint failed."""


class ModelUnavailableError(ModelError):
    """The endpoint refused the connection, timed out, or is over its limits."""


class ModelAuthenticationError(ModelError):
    """The endpoint rejected the API key."""


class ModelResponseError(ModelError):
    """The endpoint's answer can't be used; `tokens` is the number of tokens it cost."""

    def __init__(self, message: str, *, tokens: int = 0) -> None:
        super().__init__(message)
        self.tokens = tokens


class ModelNotFoundError(ModelResponseError):
    """The endpoint has no such model or path, so retrying won't help."""
