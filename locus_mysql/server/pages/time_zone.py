"""The page on which users choose the time zone of all pages: UTC, or another one, which a cookie keeps."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..problems import invalid
from .query_parameters import ZoneQuery
from .rendering import Links, page
from .sign_in import checked_form, onward_from
from .zones import COOKIE, KEPT_S, zones


def zone_form(request: Request) -> Response:
    """``GET /inspect/zone``: the form to choose a time zone."""
    query: ZoneQuery = request.state.query
    return page(request, "zone.html", zones=zones(), onward=onward_from(query.next, Links(request)))


def choose_zone(request: Request) -> Response:
    """``POST /inspect/zone``: set the cookie."""
    form = checked_form(request)
    links = Links(request)
    name = form.get("zone", "")
    if name not in zones():
        raise invalid("There is no such time zone. Choose one of the list.")
    response = RedirectResponse(onward_from(form.get("next", ""), links), 303)
    response.set_cookie(
        COOKIE,
        name,
        max_age=KEPT_S,
        path=links("/"),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response
