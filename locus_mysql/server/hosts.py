"""Where a request was sent to, and from which page: what browsers can be made to do for a stranger is refused.

A page of another site can have a browser send requests here. With tokens it has none, and so gets nothing. Without them
everybody may do everything who reaches the port, and on the loopback interface that is every page that the user of the
machine has open. So then the name that the request was sent to must be one of the loopback interface, else a site
could give its own name this address (DNS rebinding) and read what is here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.requests import Request

from .problems import Problem

#: Methods that change nothing.
_SAFE = frozenset({"GET", "HEAD"})

#: The ports of schemes that pages have.
_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")


def host_of(header: str) -> str | None:
    """The name in a Host header, in lower case and without the port and a last dot; None if it is none."""
    match = _HOST.fullmatch(header)
    return None if match is None else match[1].strip("[]").lower().rstrip(".")


def is_loopback(host: str) -> bool:
    """Whether a name, or an address, is of the loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Hosts:
    """The names that requests may be sent to.

    Args:
        names: The names; empty for any.
        loopback: Whether only those of the loopback interface are allowed, beside ``names``.
    """

    def __init__(self, names: Collection[str] = (), *, loopback: bool = False) -> None:
        self.names = {name.lower().rstrip(".") for name in names}
        self.loopback = loopback

    def check(self, request: Request) -> None:
        """Refuse a request that was sent to another name, or by a page of another site.

        Raises:
            Problem: It was.
        """
        headers = request.headers.getlist("host")
        host = host_of(headers[0]) if len(headers) == 1 else None
        if not self._allows(host):
            raise Problem(
                421,
                "wrong_host",
                "This service is not known under the name in the Host header. Without tokens only names of this "
                "machine, such as localhost, are; others must be named when it is started.",
            )
        if request.method in _SAFE:
            return
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "none")
        if site not in {"none", "same-origin"} or (origin is not None and not _is_same(origin, headers, request)):
            raise Problem(403, "cross_site", "A page of another site sent this request.")

    def _allows(self, host: str | None) -> bool:
        if not self.names and not self.loopback:
            return True
        return host is not None and (host in self.names or (self.loopback and is_loopback(host)))


def _is_same(origin: str, hosts: list[str], request: Request) -> bool:
    """Whether a page of an origin is one of this service: of the same name, port and, as far as known, scheme.

    A port that is not written is that of the origin's scheme: behind a proxy, the service need not know that the proxy
    speaks TLS. It cannot be the other way round: what came by TLS was not sent by a page without.
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
