"""Pages that list threads: the newest first with filters, and searches by words and by metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from ...errors import InvalidInput
from ...families.inspection.records import Hit, Page, Tagged, ThreadPreview, ThreadRow
from ..bodies import value_of
from ..routing import Endpoints
from .common import AGES, SIZES, MetadataQuery, SearchQuery, ThreadsQuery, as_glob, chosen, families_of, inspector_of
from .rendering import page

#: Number of threads on a page.
ON_A_PAGE = 50


PAGES = Endpoints()


@PAGES.add("GET", "/", query=ThreadsQuery)
def threads_page(request: Request) -> Response:
    """The list of threads, newest first."""
    query: ThreadsQuery = request.state.query
    existing = families_of(request)
    family = chosen(query.family, existing)
    found: Page[ThreadRow] = Page(())
    previews: Mapping[str, ThreadPreview] = {}
    if family is not None:
        now = datetime.now(UTC)
        length = AGES[query.age][0] if query.age in AGES else None
        since = now - length if length is not None and query.age != "old" else None
        until = now - length if length is not None and query.age == "old" else None
        found = inspector_of(request).threads(
            family,
            limit=ON_A_PAGE,
            cursor=query.cursor or None,
            pattern=as_glob(query.q),
            metadata=(query.key, value_of(query.value)) if query.key else None,
            min_bytes=SIZES[query.size][0] if query.size in SIZES else None,
            saved_after=since,
            saved_before=until,
        )
        previews = inspector_of(request).previews(family, [thread.thread_id for thread in found.items])
    kept = {
        "family": family,
        "q": query.q,
        "key": query.key,
        "value": query.value,
        "size": query.size,
        "age": query.age,
    }
    return page(
        request,
        "threads.html",
        section="threads",
        existing=existing,
        family=family,
        query=query,
        kept=kept,
        filtered=any((query.q, query.key, query.size, query.age)),
        found=found,
        previews=previews,
        sizes=SIZES,
        ages=AGES,
    )


#: Number of hits on a page.
MOST_HITS = 50


@PAGES.add("GET", "/inspect/search", query=SearchQuery)
def search_page(request: Request) -> Response:
    """The search by words of conversations."""
    query: SearchQuery = request.state.query
    existing = families_of(request)
    family = chosen(query.family, existing) if query.family else None
    asked = [one for one in existing if one == family or not query.family]
    words = query.q.strip()
    found: list[Hit] = []
    refused: list[str] = []
    for one in asked if words else ():
        try:
            found += inspector_of(request).search(words, family=one, limit=MOST_HITS)
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
        found=found[:MOST_HITS],
        refused=refused,
        most=MOST_HITS,
    )


@PAGES.add("GET", "/inspect/metadata", query=MetadataQuery)
def metadata_page(request: Request) -> Response:
    """The search by metadata."""
    query: MetadataQuery = request.state.query
    existing = families_of(request)
    family = chosen(query.family, existing)
    found: Sequence[Tagged] = ()
    if family is not None and query.key:
        found = inspector_of(request).by_metadata(query.key, value_of(query.value), family=family, limit=MOST_HITS)
    return page(
        request,
        "metadata.html",
        section="metadata",
        existing=existing,
        family=family,
        query=query,
        found=found,
        most=MOST_HITS,
    )
