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
from ..routing import Endpoints, LenientQuery
from ..services import read, services_of, stores_of
from .common import (
    AGES,
    SIZES,
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

PAGES = Endpoints(base=LenientQuery)

#: Number of hits on a page.
MOST_HITS = 50


@PAGES.add("GET", "/")
def threads_page(
    request: Request,
    family: str = "",
    q: str = "",
    key: str = "",
    value: str = "",
    size: str = "",
    age: str = "",
    cursor: str = "",
) -> Response:
    """The list of threads, newest first."""
    existing = families_of(request)
    shown = chosen(family, existing)
    found: Page[ThreadRow] = Page(())
    previews: Mapping[str, ThreadPreview] = {}
    if shown is not None:
        since = datetime.now(UTC) - AGES[age][0] if age in AGES else None
        inspector = inspector_of(request)
        found = read(
            inspector.threads(
                shown,
                limit=ON_A_PAGE,
                cursor=cursor or None,
                pattern=as_glob(q),
                metadata=(key, value_of(value)) if key else None,
                min_bytes=SIZES[size][0] if size in SIZES else None,
                saved_after=None if age == "old" else since,
                saved_before=since if age == "old" else None,
            )
        )
        previews = read(inspector.previews(shown, [thread.thread_id for thread in found.items]))
    return page(
        request,
        "threads.html",
        section="threads",
        existing=existing,
        family=shown,
        kept={"family": shown, "q": q, "key": key, "value": value, "size": size, "age": age},
        filtered=any((q, key, size, age)),
        found=found,
        previews=previews,
        sizes=SIZES,
        ages=AGES,
    )


@PAGES.add("GET", "/inspect/search")
def search_page(request: Request, family: str = "", q: str = "") -> Response:
    """The search by words of conversations."""
    existing = families_of(request)
    only = chosen(family, existing) if family else None
    found: list[Hit] = []
    refused: list[str] = []
    for one in existing if q.strip() else ():
        if family and one != only:
            continue
        try:
            found += read(inspector_of(request).search(q.strip(), family=one, limit=MOST_HITS))
        except InvalidInput as error:  # a family without a full-text index must not hide the hits of the others
            refused.append(str(error))
    found.sort(key=lambda hit: (hit.score, hit.created_at), reverse=True)
    return page(
        request,
        "search.html",
        section="search",
        existing=existing,
        family=only,
        found=found[:MOST_HITS],
        refused=refused,
        most=MOST_HITS,
    )


@PAGES.add("GET", "/inspect/metadata")
def metadata_page(request: Request, family: str = "", key: str = "", value: str = "") -> Response:
    """The search by metadata."""
    existing = families_of(request)
    shown = chosen(family, existing)
    found: Sequence[Tagged] = ()
    if shown is not None and key:
        found = read(inspector_of(request).by_metadata(key, value_of(value), family=shown, limit=MOST_HITS))
    return page(
        request, "metadata.html", section="metadata", existing=existing, family=shown, found=found, most=MOST_HITS
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


@PAGES.add("GET", "/inspect/copy")
def copy_form(
    request: Request, thread: str, family: str = "agents", checkpoint: str = "", namespace: str = ""
) -> Response:
    """The form to copy a whole thread, or to continue one state in a new thread."""
    check_allowed(request)
    return page(
        request,
        "copy.html",
        section="threads",
        thread=thread_of(request, family_of(family), thread),
        family=family,
        proposed=f"{thread}-{'branch' if checkpoint else 'copy'}"[:512],
    )


@PAGES.add("POST", "/inspect/copy", form=True)
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


@PAGES.add("GET", "/inspect/delete")
def delete_form(
    request: Request, thread: str, family: str = "agents", checkpoint: str = "", namespace: str = ""
) -> Response:
    """The form to delete a thread, or one of its checkpoints."""
    check_allowed(request)
    row = thread_of(request, family_of(family), thread)
    if checkpoint:
        state = read(inspector_of(request).state(family, thread, checkpoint, namespace=namespace))
        if state is None:
            raise not_found("checkpoint")
    return page(request, "delete.html", section="threads", thread=row, family=family)


@PAGES.add("POST", "/inspect/delete", form=True)
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
    stays = checkpoint_id is not None and read(inspector_of(request).thread(family, thread_id)) is not None
    return RedirectResponse(links.thread(family, thread_id) if stays else links("/", family=family), 303)
