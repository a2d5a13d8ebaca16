"""Pages that list threads, the newest first or by a search; and the changes of threads: copying, branching, deleting.

Changes are offered if they are allowed, and each needs a confirmation: `GET` shows the planned change with a form; only
its `POST` executes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import InvalidInput
from ...families.inspection.records import Hit, Page, Tagged, ThreadPreview, ThreadRow
from ...runtime.arguments import check_checkpoint_id, check_thread_id
from ..bodies import value_of
from ..problems import Problem, not_found
from ..routing import Endpoints
from ..services import services_of, stores_of
from .common import (
    AGES,
    SIZES,
    MetadataQuery,
    SearchQuery,
    ThreadQuery,
    ThreadsQuery,
    as_glob,
    chosen,
    families_of,
    family_of,
    inspector_of,
    thread_of,
)
from .rendering import Links, page
from .sign_in import checked_form

#: Number of threads on a page.
ON_A_PAGE = 50

PAGES = Endpoints()

#: Number of hits on a page.
MOST_HITS = 50


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


def check_allowed(request: Request) -> None:
    """Refuse a change unless changes are allowed.

    Raises:
        Problem: Changes are not allowed.
    """
    if not services_of(request).allow_writes:
        raise Problem("read_only", "The pages are read-only. To allow changes, start the service with --allow-writes.")
    if not request.state.caller.may_write:
        raise Problem("read_only", "You signed in with a token that does not allow writes.")


@PAGES.add("GET", "/inspect/copy", query=ThreadQuery)
def copy_form(request: Request) -> Response:
    """The form to copy a whole thread, or to continue one state in a new thread."""
    check_allowed(request)
    query: ThreadQuery = request.state.query
    family = family_of(query.family)
    thread = thread_of(request, family, query.thread)
    return page(
        request,
        "copy.html",
        section="threads",
        thread=thread,
        family=family,
        query=query,
        proposed=f"{query.thread}-{'branch' if query.checkpoint else 'copy'}"[:512],
        can_branch=stores_of(request).changes(family).can_branch,
    )


@PAGES.add("POST", "/inspect/copy", body="form")
def copy_thread(request: Request) -> Response:
    """Copy a thread."""
    check_allowed(request)
    form = checked_form(request)
    family = family_of(form.get("family", ""))
    source, target = check_thread_id(form.get("thread", "")), check_thread_id(form.get("target", ""))
    checkpoint_id = form.get("checkpoint") or None
    if checkpoint_id is None:
        if not stores_of(request).change(family, lambda changes: changes.copy(source, target)):
            raise not_found("thread")
    else:
        branched = check_checkpoint_id(checkpoint_id)
        if not stores_of(request).change(family, lambda changes: changes.branch(source, branched, target)):
            raise not_found("checkpoint")
    return RedirectResponse(Links(request).thread(family, target), 303)


@PAGES.add("GET", "/inspect/delete", query=ThreadQuery)
def delete_form(request: Request) -> Response:
    """The form to delete a thread, or one of its checkpoints."""
    check_allowed(request)
    query: ThreadQuery = request.state.query
    family = family_of(query.family)
    thread = thread_of(request, family, query.thread)
    if query.checkpoint:
        state = inspector_of(request).state(family, query.thread, query.checkpoint, namespace=query.namespace)
        if state is None:
            raise not_found("checkpoint")
    return page(request, "delete.html", section="threads", thread=thread, family=family, query=query)


@PAGES.add("POST", "/inspect/delete", body="form")
def delete(request: Request) -> Response:
    """Delete a thread, or one of its checkpoints."""
    check_allowed(request)
    form = checked_form(request)
    family = family_of(form.get("family", ""))
    thread_id, checkpoint_id = check_thread_id(form.get("thread", "")), form.get("checkpoint") or None
    namespace, links = form.get("namespace", ""), Links(request)
    gone = stores_of(request).change(family, lambda changes: changes.delete(thread_id, checkpoint_id, namespace))
    if not gone:
        raise not_found("checkpoint" if checkpoint_id else "thread")
    stays = checkpoint_id is not None and inspector_of(request).thread(family, thread_id) is not None
    return RedirectResponse(links.thread(family, thread_id) if stays else links("/", family=family), 303)
