"""Who may send a request: `by_header` identifies its caller, and `Hosts` refuses what browsers send for other sites.

A page of another site can make a browser send requests here. If tokens are required, such a page has none. Without
tokens, every client that reaches the port has full access; on the loopback interface that includes every page that the
user of the machine has open. So then the request must be addressed to a name of the loopback interface. Otherwise a
site could resolve its own name to this address (DNS rebinding) and read everything.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.requests import Request

from .problems import Problem
from .routing import Authenticate
from .tokens import Caller, Tokens

#: Length of the longest Authorization header that is parsed, in characters.
_LONGEST = 1024

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="locus-mysql", Basic realm="locus-mysql", charset="UTF-8"'}

#: Methods that change nothing.
_SAFE = frozenset({"GET", "HEAD"})

#: The default ports of schemes.
_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")


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


def host_of(header: str) -> str | None:
    """Return the name in a Host header in lower case, without port and trailing dot; None if the header is invalid."""
    match = _HOST.fullmatch(header)
    return None if match is None else match[1].strip("[]").lower().rstrip(".")


def is_loopback(host: str) -> bool:
    """Return whether a name or an address belongs to the loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Hosts:
    """The host names that requests may be sent to.

    Args:
        names: The names; empty allows any.
        loopback: Whether only names of the loopback interface are allowed, beside ``names``.
    """

    def __init__(self, names: Collection[str] = (), *, loopback: bool = False) -> None:
        self.names = {name.lower().rstrip(".") for name in names}
        self.loopback = loopback

    def check(self, request: Request) -> None:
        """Refuse a request that was sent to another host name, or by a page of another site.

        Raises:
            Problem: The request is refused.
        """
        headers = request.headers.getlist("host")
        host = host_of(headers[0]) if len(headers) == 1 else None
        if not self._allows(host):
            raise Problem(
                "wrong_host",
                "The Host header names a host that this service does not serve. Without tokens it serves only names "
                "of this machine, such as localhost, and those given with --allowed-host when it is started.",
            )
        if request.method in _SAFE:
            return
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "none")
        if site not in {"none", "same-origin"} or (origin is not None and not _is_same(origin, headers, request)):
            raise Problem("cross_site", "A page of another site sent this request.")

    def _allows(self, host: str | None) -> bool:
        if not self.names and not self.loopback:
            return True
        return host is not None and (host in self.names or (self.loopback and is_loopback(host)))


def _is_same(origin: str, hosts: list[str], request: Request) -> bool:
    """Return whether an origin is this service's: the same name, port and, as far as known, scheme.

    A missing port is the default of the origin's scheme: behind a proxy, the service does not have to know whether the
    proxy uses TLS. The opposite case is refused: a page without TLS cannot have sent a request over TLS.
    """
    try:
        parts = urlsplit(origin)
        name, port = parts.hostname, parts.port
    except ValueError:
        return False
    host = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if name is None or host is None or parts.scheme not in _PORTS:
        return False
    if request.url.scheme == "https" != parts.scheme:
        return False
    default = _PORTS[parts.scheme]
    return (name.lower().rstrip("."), port or default) == (host_of(hosts[0]), int(host[2] or default))
