"""Where a server listens: the socket, and the address that a person can open."""

from __future__ import annotations

import ipaddress
import socket

from gcmem.errors import ServeError


def listening_socket(host: str, port: int) -> socket.socket:
    """Returns a socket that listens at the address; raises ServeError if it can't."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = error.strerror or error
        raise ServeError(
            f"can't listen on {host}:{port}: {reason}; choose others with --host and --port"
        ) from None


def url_of(host: str, port: int) -> str:
    """Returns the address to open from this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"http://{host or 'localhost'}:{port}/"
    if address.is_unspecified:  # it means every address, and no browser can open it
        return f"http://localhost:{port}/"
    return f"http://[{host}]:{port}/" if address.version == 6 else f"http://{host}:{port}/"
