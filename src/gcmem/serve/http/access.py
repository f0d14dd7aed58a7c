"""Identifies callers by their keys, and narrows requests to their scope."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers

from gcmem.errors import (
    ForbiddenError,
    NoKeysError,
    NotAuthenticatedError,
    PublicAddressError,
)
from gcmem.serve.keys import KeyStore
from gcmem.types import UNTRUSTED, Scope

FIELDS = ("user_id", "agent_id", "run_id")
FORWARDED = ("forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")
"""Headers that proxies add, beside those that begin with X-Forwarded-."""
MAKE_A_KEY = "make a key: gcmem keys create NAME"
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes a request: a key with its scope, or anyone if no key is needed."""

    id: str = ""
    name: str | None = None
    scope: Scope = field(default_factory=Scope)
    read_only: bool = False
    untrusted: bool = False

    def narrow(self, asked: Scope) -> Scope:
        """Returns the scope of a request, restricted to the key's.

        A field that is left out takes the key's value; another value than the key's is an error.
        """
        for name in FIELDS:
            bound, wanted = getattr(self.scope, name), getattr(asked, name)
            if bound is not None and wanted is not None and wanted != bound:
                raise ForbiddenError(
                    f"this key is bound to {name}={bound!r}; leave {name} out, or pass that one"
                )
        return Scope(**{n: getattr(self.scope, n) or getattr(asked, n) for n in FIELDS})

    def check_may_write(self) -> None:
        """Raises if the key is read-only."""
        if self.read_only:
            raise ForbiddenError("this key is read-only; use one that may write")

    @property
    def max_trust(self) -> int | None:
        """The highest trust level of memories that the caller may erase; None for any."""
        return UNTRUSTED if self.untrusted else None

    @property
    def is_bound(self) -> bool:
        """Whether the caller may see only one scope."""
        return self.scope != Scope()

    def check_is_unbound(self) -> None:
        """Raises if the key is bound to a scope: some figures cover all scopes."""
        if self.is_bound:
            raise ForbiddenError("this key is bound to a scope; use one that is not")


def identify(request: Mapping[str, Any], keys: KeyStore | None) -> Caller:
    """Returns the caller of a request (an ASGI scope); raises if it must not be answered."""
    headers = Headers(scope=request)  # type: ignore[arg-type]
    check_origin(headers)
    if keys is None or not keys.required:
        check_is_direct(request, remedy=MAKE_A_KEY)
        _check_name(headers)
        return Caller()
    given = headers.getlist("authorization")
    if len(given) > 1:
        # Two proxies could each trust a different one.
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


def _check_name(headers: Headers) -> None:
    # A web page can point its own name at this machine; the browser still sends that name.
    if not is_loopback(_split(headers.get("host", ""))[0]):
        raise ForbiddenError(
            f"a server without keys answers to 127.0.0.1 and localhost only; {MAKE_A_KEY}"
        )


def check_is_direct(request: Mapping[str, Any], *, remedy: str) -> None:
    """Raises unless a request (an ASGI scope) comes directly from this machine.

    The connection must have arrived at a loopback address. A proxy on this machine passes that
    test, so signs of one are refused too: headers that proxies add, and HTTP/1.0, which nginx
    speaks to servers by default.
    """
    if not is_loopback((request.get("server") or ("",))[0]):
        raise ForbiddenError(f"this server answers only to its own machine; {remedy}")
    names = list(Headers(scope=request))  # type: ignore[arg-type]
    traces = [name for name in names if name in FORWARDED or name.startswith("x-forwarded-")]
    if request.get("http_version") == "1.0":
        traces.append("HTTP/1.0")
    if traces:
        raise ForbiddenError(
            f"a proxy forwarded this request ({', '.join(traces)}), and the server would let in "
            f"everybody whom the proxy serves; {remedy}"
        )


def check_origin(headers: Headers) -> None:
    """Raises if the request comes from a web page of another server."""
    given = headers.getlist("origin")
    if not given:
        return  # no browser, or a browser that only reads its own page
    scheme, _, rest = given[0].lower().partition("://")
    own = headers.get("host", "").lower()
    if (
        len(given) > 1
        or scheme not in DEFAULT_PORTS
        or _address(rest, scheme) != _address(own, scheme)
    ):
        raise ForbiddenError(
            "a web page from elsewhere made this request (see its Origin header); only pages of "
            "this server may. Behind a proxy, pass the Host header on as it came"
        )


def _address(host: str, scheme: str) -> tuple[str, int]:
    name, port = _split(host)
    return name, int(port) if port else DEFAULT_PORTS[scheme]


def _split(host: str) -> tuple[str, str]:
    """Splits a Host header into the name, without brackets, and the port."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdecimal() or host.endswith("]"):
        name, port = host, ""
    return name.removeprefix("[").removesuffix("]"), port


def is_loopback(host: str) -> bool:
    """Tells whether an address can be reached only from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, keys: KeyStore, *, named: bool = False) -> None:
    """Raises if other machines could reach the memory without a key, or `named` keys are missing.

    After this check, a server that others can reach needs keys even if their file disappears.
    """
    if named and not keys.required:
        raise NoKeysError(keys.path)
    if is_loopback(host):
        return
    if not any(key.revoked_at is None for key in keys.list()):
        raise PublicAddressError(host, keys=keys.path)
    keys.require()
