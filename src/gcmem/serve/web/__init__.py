"""The dashboard: static files that use the REST API and need no build."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["CONTENT_SECURITY_POLICY", "Asset", "assets", "mount"]

FOLDER = Path(__file__).with_name("static")
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Browsers revalidate every file, so an upgrade never mixes old and new ones.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file of the bundle: where it is served, and as what."""

    path: str
    media_type: str
    content: bytes

    @property
    def etag(self) -> str:
        """A hash of the content, as a strong validator."""
        return f'"{hashlib.blake2b(self.content, digest_size=12).hexdigest()}"'


def assets() -> Iterator[Asset]:
    """Yields the files of the bundle; the page itself is served at "/"."""
    for file in sorted(FOLDER.iterdir()):
        if file.suffix in MEDIA_TYPES:
            path = "/" if file.name == "index.html" else f"/assets/{file.name}"
            media_type = MEDIA_TYPES[file.suffix]
            yield Asset(path=path, media_type=media_type, content=file.read_bytes())


def mount(app: Starlette) -> None:
    """Adds the dashboard to an app (FastAPI's or Starlette's) at "/".

    The files hold nothing secret, so they need no key. The API calls of the page do.
    """
    for asset in assets():
        app.add_route(
            asset.path, _endpoint(asset), methods=["GET", "HEAD"], include_in_schema=False
        )


def _endpoint(asset: Asset) -> Callable[[Request], Awaitable[Response]]:
    from starlette.responses import Response  # comes with FastAPI, in the extra "serve"

    headers = {**HEADERS, "ETag": asset.etag}

    async def endpoint(request: Request) -> Response:
        known = request.headers.get("if-none-match", "")
        if asset.etag in (tag.strip().removeprefix("W/") for tag in known.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    return endpoint
