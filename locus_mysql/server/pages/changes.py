"""The changes that pages offer if they are allowed: copying, branching, deleting. Each needs a confirmation.

`GET` shows the planned change with a form; only its `POST` executes it.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...engine.operation import Operation
from ...families.inspection.sources import ThreadChanges
from ...families.registry import find_family
from ...runtime.arguments import check_checkpoint_id, check_thread_id
from ...runtime.sealing import fetching_keys
from ..problems import Problem, not_found
from ..routing import Endpoints
from ..services import services_of
from .common import ThreadQuery, changes_in, config_of, family_of, inspector_of, thread_of
from .rendering import Links, page
from .sign_in import checked_form


def check_allowed(request: Request) -> None:
    """Refuse a change unless changes are allowed.

    Raises:
        Problem: Changes are not allowed.
    """
    if not services_of(request).allow_writes:
        raise Problem(
            403, "read_only", "The pages are read-only. To allow changes, start the service with --allow-writes."
        )
    if not request.state.caller.may_write:
        raise Problem(403, "read_only", "You signed in with a token that does not allow writes.")


PAGES = Endpoints()


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
        can_branch=changes_in(request, family).can_branch,
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
        if not _run(request, family, lambda changes: changes.copy(source, target)):
            raise not_found("thread")
    else:
        branched = check_checkpoint_id(checkpoint_id)
        if not _run(request, family, lambda changes: changes.branch(source, branched, target)):
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
    gone = _run(request, family, lambda changes: changes.delete(thread_id, checkpoint_id, namespace))
    if not gone:
        raise not_found("checkpoint" if checkpoint_id else "thread")
    stays = checkpoint_id is not None and inspector_of(request).thread(family, thread_id) is not None
    return RedirectResponse(links.thread(family, thread_id) if stays else links("/", family=family), 303)


def _run(request: Request, family: str, change: Callable[[ThreadChanges], Operation[bool]]) -> bool:
    """Carry out a change of a family's threads; creates no tables."""
    operation = change(changes_in(request, family))
    config = config_of(request)
    steps = fetching_keys(operation, config)
    return services_of(request).database.synchronous.run(steps, find_family(family).schema(config), "validate")
