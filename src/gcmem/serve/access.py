"""Who asks, and what they may see: keys become callers, requests are narrowed to their scope."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from gcmem.errors import ForbiddenError, NotAuthenticatedError, PublicAddressError
from gcmem.serve.keys import KeyStore
from gcmem.types import UNTRUSTED, Scope

FIELDS = ("user_id", "agent_id", "run_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever makes a request: a key with its scope, or anyone where no key is needed."""

    id: str = ""
    name: str | None = None
    scope: Scope = field(default_factory=Scope)
    read_only: bool = False
    untrusted: bool = False

    def narrow(self, asked: Scope) -> Scope:
        """Returns the scope of a request: what the key is bound to, and what it leaves open.

        A field that is left out becomes the key's; one that names another value is an error.
        """
        for name in FIELDS:
            bound, wanted = getattr(self.scope, name), getattr(asked, name)
            if bound is not None and wanted is not None and wanted != bound:
                raise ForbiddenError(
                    f"this key is bound to {name}={bound!r}; leave {name} out, or pass that one"
                )
        return Scope(**{n: getattr(self.scope, n) or getattr(asked, n) for n in FIELDS})

    def check_may_write(self) -> None:
        """Raises where the key is read-only."""
        if self.read_only:
            raise ForbiddenError("this key is read-only; use one that may write")

    @property
    def max_trust(self) -> int | None:
        """Up to which trust level the caller may erase and change memories; None for any."""
        return UNTRUSTED if self.untrusted else None

    def check_is_unbound(self) -> None:
        """Raises where the key is bound to a scope: some figures are of everybody."""
        if self.scope != Scope():
            raise ForbiddenError("this key is bound to a scope; use one that is not")


def identify(headers: Headers, keys: KeyStore | None) -> Caller:
    """Returns the caller of a request; raises where a key is needed and there is no good one."""
    if keys is None or not keys.required:
        return _anyone(headers)
    given = headers.getlist("authorization")
    if len(given) > 1:
        # Two parties in the middle could each believe another one of them.
        raise NotAuthenticatedError("pass one Authorization header, not several")
    scheme, _, secret = (given[0] if given else "").partition(" ")
    key = keys.find(secret.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        raise NotAuthenticatedError(
            "pass an API key: Authorization: Bearer gcm_…; it is missing, unknown or revoked"
        )
    return Caller(
        id=key.id,
        name=key.name,
        scope=key.scope,
        read_only=key.read_only,
        untrusted=key.untrusted,
    )


def _anyone(headers: Headers) -> Caller:
    # A web page can point its own name at this machine; the browser still tells that name.
    host = headers.get("host", "")
    if not is_loopback(host.removesuffix(f":{_port(host)}").strip("[]")):
        raise ForbiddenError(
            "a server without keys answers to 127.0.0.1 and localhost only; make a key: "
            "gcmem keys create NAME"
        )
    return Caller()


def _port(host: str) -> str:
    port = host.rpartition(":")[2]
    return port if port.isdigit() and not host.endswith("]") else ""


def is_loopback(host: str) -> bool:
    """Tells whether only this machine reaches an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, keys: KeyStore) -> None:
    """Raises where others could reach a memory that asks for no key."""
    if not is_loopback(host) and not any(key.revoked_at is None for key in keys.list()):
        raise PublicAddressError(host, keys=keys.path)
