"""Pages of searches: by words of conversations, and by metadata."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from ...errors import InvalidInput
from ...families.inspection.records import Hit, Tagged
from ..bodies import value_of
from .common import chosen, families_of, inspector_of
from .query_parameters import MetadataQuery, SearchQuery
from .rendering import page

#: Number of hits on a page.
MOST = 50


def search_page(request: Request) -> Response:
    """``GET /inspect/search``."""
    query: SearchQuery = request.state.query
    existing = families_of(request)
    family = chosen(query.family, existing) if query.family else None
    asked = [one for one in existing if one == family or not query.family]
    words = query.q.strip()
    found: list[Hit] = []
    refused: list[str] = []
    for one in asked if words else ():
        try:
            found += inspector_of(request).search(words, family=one, limit=MOST)
        except InvalidInput as error:  # a family without a full-text index must not hide the hits of the others
            refused.append(str(error))
    found.sort(key=lambda hit: (hit.score, hit.created_at), reverse=True)
    return page(
        request,
        "search.html",
        section="search",
        existing=existing,
        family=family,
        query=query,
        found=found[:MOST],
        refused=refused,
        most=MOST,
    )


def metadata_page(request: Request) -> Response:
    """``GET /inspect/metadata``."""
    query: MetadataQuery = request.state.query
    existing = families_of(request)
    family = chosen(query.family, existing)
    found: Sequence[Tagged] = ()
    if family is not None and query.key:
        found = inspector_of(request).by_metadata(query.key, value_of(query.value), family=family, limit=MOST)
    return page(
        request,
        "metadata.html",
        section="metadata",
        existing=existing,
        family=family,
        query=query,
        found=found,
        most=MOST,
    )
