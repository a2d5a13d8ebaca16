"""What pages may change, where that is allowed: copy a thread, branch from a state, delete. Each is asked once.

`GET` shows what would be done, with a form; only its `POST` does it.
"""

from __future__ import annotations

from typing import TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...config import MySQLConfig
from ...dialect import Schema
from ...engine.operation import Operation
from ...errors import Conflict, ThreadExists
from ...families.checkpoints.conditions import NO_CHECKPOINT
from ...families.checkpoints.store import StoreOperations
from ...families.graphs.saver import SaverOperations
from ...inspection.records import ThreadFamily
from ...integrations.locus.dicts import AgentDictOperations
from ...runtime.arguments import check_checkpoint_id, check_thread_id
from ..problems import Problem, not_found
from ..services import services_of, tenant_of
from .common import family_of, inspector_of, thread_of
from .queries import ThreadQuery
from .rendering import Links, page
from .sign_in import checked_form

T = TypeVar("T")

#: A graph's states depend on those before them, so they are copied as a whole.
BRANCHES = frozenset({"agents", "dicts", "current"})


def check_allowed(request: Request) -> None:
    """Refuse what changes anything, unless it is allowed.

    Raises:
        Problem: It is not.
    """
    if not services_of(request).allow_writes:
        raise Problem(
            403, "read_only", "Pages only show what is kept. To let them change it, start with --allow-writes."
        )
    if not request.state.caller.may_write:
        raise Problem(403, "read_only", "You signed in with a token that may read, but not write.")


async def copy_form(request: Request) -> Response:
    """``GET /inspect/copy``: a whole thread, or a new thread that goes on from one state."""
    check_allowed(request)
    query: ThreadQuery = request.state.query
    family = family_of(query.family)
    thread = await thread_of(request, family, query.thread)
    return page(
        request,
        "copy.html",
        section="threads",
        thread=thread,
        family=family,
        query=query,
        proposed=f"{query.thread}-{'branch' if query.checkpoint else 'copy'}"[:512],
        can_branch=family in BRANCHES,
    )


async def copy_thread(request: Request) -> Response:
    """``POST /inspect/copy``."""
    check_allowed(request)
    form = checked_form(request)
    family = family_of(form.get("family", ""))
    source, target = check_thread_id(form.get("thread", "")), check_thread_id(form.get("target", ""))
    checkpoint_id = form.get("checkpoint") or None
    config = config_of(request)
    if checkpoint_id is None:
        await _copy(request, config, family, source, target)
    else:
        if family not in BRANCHES:
            raise Problem(400, "invalid_input", "A graph's thread can only be copied as a whole.")
        await _branch(request, config, family, source, target, check_checkpoint_id(checkpoint_id))
    return RedirectResponse(Links(request).thread(family, target), 303)


async def delete_form(request: Request) -> Response:
    """``GET /inspect/delete``: a thread, or one of its checkpoints."""
    check_allowed(request)
    query: ThreadQuery = request.state.query
    family = family_of(query.family)
    thread = await thread_of(request, family, query.thread)
    if query.checkpoint:
        state = await inspector_of(request).state(family, query.thread, query.checkpoint, namespace=query.namespace)
        if state is None:
            raise not_found("checkpoint")
    return page(request, "delete.html", section="threads", thread=thread, family=family, query=query)


async def delete(request: Request) -> Response:
    """``POST /inspect/delete``."""
    check_allowed(request)
    form = checked_form(request)
    family = family_of(form.get("family", ""))
    thread_id, checkpoint_id = check_thread_id(form.get("thread", "")), form.get("checkpoint") or None
    links, config = Links(request), config_of(request)
    if family == "versions":
        graphs = SaverOperations(config)
        if checkpoint_id is None:
            operation = graphs.delete_thread(thread_id)
        else:
            operation = graphs.delete_checkpoint(
                thread_id=thread_id, checkpoint_id=checkpoint_id, checkpoint_ns=form.get("namespace", "")
            )
        gone = await _run(request, operation, graphs.schema)
    else:
        store = _states(config, family)
        gone = await _run(request, store.delete(thread_id, checkpoint_id), store.schema)
    if not gone:
        raise not_found("checkpoint" if checkpoint_id else "thread")
    stays = checkpoint_id is not None and await inspector_of(request).thread(family, thread_id) is not None
    return RedirectResponse(links.thread(family, thread_id) if stays else links("/", family=family), 303)


def config_of(request: Request) -> MySQLConfig:
    """The configuration, for the caller's tenant. Whether there is a full-text index does not matter here."""
    return services_of(request).config.for_store(tenant=tenant_of(request))


async def _copy(request: Request, config: MySQLConfig, family: ThreadFamily, source: str, target: str) -> None:
    if family == "versions":
        graphs = SaverOperations(config)
        copied = await _run(request, graphs.copy_thread(source, target), graphs.schema)
    else:
        store = _states(config, family)
        copied = await _run(request, store.copy_thread(source, target), store.schema)
    if not copied:
        raise not_found("thread")


async def _branch(
    request: Request, config: MySQLConfig, family: ThreadFamily, source: str, target: str, checkpoint_id: str
) -> None:
    """Save a state as the first of a new thread."""
    store = _states(config, family)
    state = await _run(request, store.load(source, checkpoint_id), store.schema)
    found = await _run(request, store.get_metadata(source, checkpoint_id), store.schema)
    if state is None or found is None:
        raise not_found("checkpoint")
    saving = store.save(target, state, metadata=found["metadata"], expected=NO_CHECKPOINT)
    try:
        await _run(request, saving, store.schema)
    except Conflict as error:
        raise ThreadExists(f"There is a thread {target!r} already. Choose another name.") from error


def _states(config: MySQLConfig, family: ThreadFamily) -> StoreOperations:
    """The operations of states of this kind."""
    if family == "agents":
        return AgentDictOperations(config)
    return StoreOperations(config, "current" if family == "current" else "dicts")


async def _run(request: Request, operation: Operation[T], schema: Schema) -> T:
    return await services_of(request).database.asynchronous.run(operation, schema, "validate")
