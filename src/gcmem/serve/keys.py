"""API keys: made once, shown once, kept as hashes, bound to a scope."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gcmem.errors import InvalidInputError, StoreCorruptError, StoreUnavailableError
from gcmem.private_files import make_private_file, make_private_folder
from gcmem.types import Scope, is_storable

PREFIX = "gcm"
SECRET_BYTES = 32
MAX_NAME_CHARS = 100
BUSY_TIMEOUT_S = 5.0
COLUMNS = (
    "id, name, digest, user_id, agent_id, run_id, read_only, untrusted, created_at, revoked_at"
)
TABLES = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    digest BLOB NOT NULL,
    user_id TEXT,
    agent_id TEXT,
    run_id TEXT,
    read_only INTEGER NOT NULL,
    untrusted INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS active_names ON keys (name) WHERE revoked_at IS NULL;
"""
NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its secret: its name, the scope it is bound to, and what it may do."""

    id: str
    name: str
    scope: Scope
    read_only: bool = False
    untrusted: bool = False
    created_at: datetime
    revoked_at: datetime | None = None


class KeyStore:
    """The keys of one server in a small SQLite file.

    Every lookup reads the current file at the path, so a revocation or another file in its place
    takes effect at once.
    """

    def __init__(self, path: Path | str) -> None:
        """Opens the file lazily; the first key creates it."""
        self.path = Path(path).expanduser()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, ...] = ()
        self._was_required = False

    def create(
        self,
        name: str,
        *,
        scope: Scope | None = None,
        read_only: bool = False,
        untrusted: bool = False,
    ) -> tuple[ApiKey, str]:
        """Creates a key and returns it with its secret, which is not stored."""
        if not name.strip() or len(name) > MAX_NAME_CHARS or not is_storable(name):
            raise InvalidInputError(f"key name {name!r}: pass 1 to {MAX_NAME_CHARS} characters")
        key = ApiKey(
            id=secrets.token_hex(6),
            name=name,
            scope=scope or Scope(),
            read_only=read_only,
            untrusted=untrusted,
            created_at=datetime.now(UTC),
        )
        secret = f"{PREFIX}_{key.id}_{secrets.token_urlsafe(SECRET_BYTES)}"
        self._make_file()
        with self._using() as connection:
            try:
                connection.execute(
                    f"INSERT INTO keys ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,NULL)",
                    (
                        key.id, name, _digest(secret), key.scope.user_id, key.scope.agent_id,
                        key.scope.run_id, read_only, untrusted, key.created_at.isoformat(),
                    ),
                )  # fmt: skip
            except sqlite3.IntegrityError:
                raise InvalidInputError(
                    f"there is a key {name!r} already; revoke it first, or choose another name"
                ) from None
        return key, secret

    def list(self) -> tuple[ApiKey, ...]:
        """Returns all keys, revoked ones too, oldest first."""
        if not self.path.exists():
            return ()
        with self._using() as connection:
            rows = connection.execute(f"SELECT {COLUMNS} FROM keys ORDER BY created_at").fetchall()
        return tuple(_key(row) for row in rows)

    def revoke(self, name: str) -> ApiKey:
        """Revokes a key permanently."""
        key = next((k for k in self.list() if k.name == name and k.revoked_at is None), None)
        if key is None:
            raise InvalidInputError(f"no active key {name!r} in {self.path}; see: gcmem keys list")
        now = datetime.now(UTC)
        with self._using() as connection:
            connection.execute(
                "UPDATE keys SET revoked_at = ? WHERE id = ?", (now.isoformat(), key.id)
            )
        return next(k for k in self.list() if k.id == key.id)

    def find(self, secret: str) -> ApiKey | None:
        """Returns the active key of a secret, or None."""
        parts = secret.split("_", 2)
        row = None
        if len(parts) == 3 and parts[0] == PREFIX and self.path.exists():
            with self._using() as connection:
                row = connection.execute(
                    f"SELECT {COLUMNS} FROM keys WHERE id = ? AND revoked_at IS NULL", (parts[1],)
                ).fetchone()
        # The id is not secret. The digest is compared in constant time, even with an unknown id.
        same = hmac.compare_digest(_digest(secret), NO_DIGEST if row is None else row[2])
        return _key(row) if same and row is not None else None

    @property
    def required(self) -> bool:
        """Whether requests need a key: from the first key on, even if the file disappears."""
        if not self._was_required and self.path.exists():
            with self._using() as connection:
                found = connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone()
            self._was_required = found is not None
        return self._was_required

    def require(self) -> None:
        """Makes requests need a key from now on, even if there is none."""
        self._was_required = True

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._disconnect()

    def _make_file(self) -> None:
        try:
            make_private_folder(self.path.parent)
            make_private_file(self.path)
        except OSError as error:
            raise StoreUnavailableError(
                f"can't write the keys to {self.path}: {error.strerror or error}; pass --keys FILE"
            ) from error

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connected()
            except (sqlite3.OperationalError, OSError) as error:
                raise StoreUnavailableError(
                    f"can't use the keys in {self.path}: {error}"
                ) from error
            except sqlite3.DatabaseError as error:
                raise StoreCorruptError(
                    f"{self.path} is not a file of keys, or is damaged ({error}); pass --keys FILE"
                ) from error

    def _connected(self) -> sqlite3.Connection:
        """Returns a connection to the file at the path, which may have been replaced."""
        found = self.path.stat()
        place = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
        if self._connection is None or place != self._opened:
            self._disconnect()
            # "rw": a file that was just moved away is not created again.
            self._connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            self._connection.executescript(TABLES)
            self._opened = place
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _digest(secret: str) -> bytes:
    # Plain SHA-256 is enough: the secret is 256 random bits, which no dictionary holds. A slow
    # password hash would only slow every request down.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _key(row: tuple[object, ...]) -> ApiKey:
    key_id, name, _, user_id, agent_id, run_id, read_only, untrusted, created, revoked = row
    return ApiKey(
        id=str(key_id),
        name=str(name),
        scope=Scope(user_id=user_id, agent_id=agent_id, run_id=run_id),  # type: ignore[arg-type]
        read_only=bool(read_only),
        untrusted=bool(untrusted),
        created_at=datetime.fromisoformat(str(created)),
        revoked_at=None if revoked is None else datetime.fromisoformat(str(revoked)),
    )
