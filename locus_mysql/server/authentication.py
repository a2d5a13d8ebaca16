"""`by_header`: identifies the caller of a request by its Authorization header."""

from __future__ import annotations

import base64
import binascii

from starlette.requests import Request

from .callers import Caller
from .problems import Problem
from .routing import Authenticate
from .tokens import Tokens

#: Length of the longest Authorization header that is parsed, in characters.
_LONGEST = 1024

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="locus-mysql", Basic realm="locus-mysql", charset="UTF-8"'}


def by_header(tokens: Tokens | None, anyone: Caller) -> Authenticate:
    """Return a function that identifies a caller by ``Bearer TOKEN``, or ``Basic`` with the token as the password.

    Args:
        tokens: The tokens; None if callers need none.
        anyone: The caller that every request has then.
    """

    def authenticate(request: Request) -> Caller:
        if tokens is None:
            return anyone
        given = request.headers.getlist("authorization")
        secret = secret_of(given[0]) if len(given) == 1 else None
        caller = None if secret is None else tokens.find(secret)
        if caller is None:
            raise Problem(
                401,
                "not_authenticated",
                "A valid token is needed, as a bearer token or as the password of Basic authentication.",
                headers=_CHALLENGE,
            )
        return caller

    return authenticate


def secret_of(header: str) -> str | None:
    """Return the token in an Authorization header, or None. Basic authentication may name any user."""
    scheme, _, rest = header.partition(" ")
    rest = rest.strip(" ")
    if len(header) > _LONGEST or not rest:
        return None
    if scheme.lower() == "bearer":
        return rest
    if scheme.lower() != "basic":
        return None
    try:
        user_and_password = base64.b64decode(rest, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return user_and_password.partition(":")[2] or None
