"""Static files: the style sheet, the script, the icon."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from ..problems import not_found

TYPES = {
    "style.css": "text/css",
    "pages.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

#: A link contains a digest of its file, so the answer never changes.
_KEPT = "public, max-age=31536000, immutable"


@cache
def content_of(name: str) -> bytes:
    """Return a file's content."""
    return files(__package__).joinpath("static", name).read_bytes()


@cache
def version_of(name: str) -> str:
    """Return a digest of a file."""
    return hashlib.sha256(content_of(name)).hexdigest()[:16]


async def static_file(request: Request) -> Response:
    """``GET /static/{name}``."""
    name = request.path_params["name"]
    media_type = TYPES.get(name)
    if media_type is None:
        raise not_found("file")
    kept = _KEPT if request.state.query.v == version_of(name) else "no-cache"
    return Response(content_of(name), headers={"Cache-Control": kept}, media_type=media_type)
