"""Time zones that users may choose, and the one of a request."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from starlette.requests import Request

#: The name of the cookie, and the seconds that the browser keeps it: a year.
COOKIE, KEPT_S = "locus_mysql_zone", 365 * 86_400

#: The name of UTC, which needs no cookie.
NO_ZONE = "UTC"


@cache
def zones() -> tuple[str, ...]:
    """Return the names of the time zones that this machine knows, UTC first."""
    known = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return (NO_ZONE, *known)


@cache
def zone_named(name: str) -> tzinfo:
    """Return a time zone; UTC for a name that `zones` does not contain."""
    return ZoneInfo(name) if name != NO_ZONE and name in zones() else UTC


def name_of_zone(request: Request) -> str:
    """Return the name of the time zone in a request's cookie; that of UTC without a valid one."""
    given = request.cookies.get(COOKIE, "")
    return given if given in zones() else NO_ZONE


def zone_of(request: Request) -> tzinfo:
    """Return the time zone of a request, which signing in has read from its cookie."""
    return zone_named(getattr(request.state, "zone", NO_ZONE))
