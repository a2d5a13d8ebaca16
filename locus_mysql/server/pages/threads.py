"""The page with the list of threads, newest first, with search and filters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from ...families.inspection.records import Page, ThreadPreview, ThreadRow
from ..bodies import value_of
from .common import chosen, families_of, inspector_of
from .query_parameters import AGES, SIZES, ThreadsQuery, as_glob
from .rendering import page

#: Number of threads on a page.
ON_A_PAGE = 50


def threads_page(request: Request) -> Response:
    """``GET /``."""
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
