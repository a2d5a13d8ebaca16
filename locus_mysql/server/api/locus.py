"""Endpoints for ``locus.memory.backends.HTTPCheckpointer``.

httpx removes dot segments from a path, as RFC 3986 requires, and a dot cannot be escaped: for the thread ``.`` it
requests ``/threads/checkpoints``, and for ``..`` ``/checkpoints``. So these paths exist as well. Checkpoints with such
ids are refused, as no client could request them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from uuid import uuid4

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from ...integrations.locus.family import AGENTS
from ..bodies import answer, answer_text
from ..problems import Problem, invalid, not_found
from ..routing import Endpoint
from ..services import services_of, tenant_of
from .models import Gone

#: The largest number of ids in an answer. A larger limit is reduced to it, as Locus' client would take an error for a
#: thread without checkpoints.
MOST_LISTED = 100_000

#: Prefixes of the paths of a thread's checkpoints, with the thread's id where the path cannot contain it.
_PLACES = (("/threads/{thread_id}/checkpoints", None), ("/threads/checkpoints", "."), ("/checkpoints", ".."))


class NewCheckpoint(BaseModel):
    """A state to save. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True)

    checkpoint_id: Annotated[str, Field(description="1 to 128 characters; a random one if left out")] | None = None
    thread_id: Annotated[str, Field(description="the same as in the path")] | None = None
    created_at: Annotated[str, Field(description="ignored: the service uses the database's clock")] | None = None
    parent_id: Annotated[str, Field(description="the parent checkpoint; if left out, the thread's newest")] | None = (
        None
    )
    state: dict[str, Any]
    metadata: Annotated[dict[str, Any], Field(description="at most 65,536 bytes as JSON")] | None = None


class Saved(BaseModel):
    """The id of the new checkpoint."""

    checkpoint_id: str


class State(BaseModel):
    """A checkpoint's state."""

    state: dict[str, Any]


class Listing(BaseModel):
    """The ids of a thread's checkpoints, newest first."""

    checkpoints: list[str]


def whole_number(value: object) -> object:
    """Parse a limit in a query. A larger number is reduced to the largest allowed."""
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit()):
            raise ValueError("must be a whole number")
        return min(int(value[:20]), MOST_LISTED)
    return value


class HowMany(BaseModel):
    """The query of a list."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, BeforeValidator(whole_number), Field(ge=0, description="the maximum number of ids")] = 10


def locus_endpoints() -> list[Endpoint]:
    """Return all of these endpoints."""
    endpoints = []
    for path, thread_id in _PLACES:
        one = f"{path}/{{checkpoint_id}}"
        endpoints += [
            Endpoint(
                "POST", path, _of(thread_id, save), "write", "Save a state as the newest checkpoint of a thread",
                body=NewCheckpoint, answer=Saved,
            ),
            Endpoint(
                "GET", path, _of(thread_id, list_checkpoints), "read", "List the ids of a thread's checkpoints, "
                                                                       "newest first",
                query=HowMany, answer=Listing, family=AGENTS, without_tables={"checkpoints": []},
            ),
            Endpoint(
                "DELETE", path, _of(thread_id, delete), "write", "Delete a thread", answer=Gone,
                family=AGENTS, without_tables="thread",
            ),
            Endpoint(
                "GET", one, _of(thread_id, load), "read", "Get the state of a checkpoint", answer=State,
                family=AGENTS, without_tables="checkpoint",
            ),
            Endpoint(
                "DELETE", one, _of(thread_id, delete), "write", "Delete a checkpoint", answer=Gone,
                family=AGENTS, without_tables="checkpoint",
            ),
        ]  # fmt: skip
    return endpoints


def _of(thread_id: str | None, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return a handler for a path that means this thread without naming it."""
    if thread_id is None:
        return handler

    def handle(request: Request) -> Response:
        request.path_params["thread_id"] = thread_id
        return handler(request)

    return handle


def save(request: Request) -> Response:
    """Save a state. A repeated request with the same content changes nothing and gets the same answer."""
    new: NewCheckpoint = request.state.body
    thread_id = request.path_params["thread_id"]
    if new.thread_id is not None and new.thread_id != thread_id:
        raise Problem(400, "thread_mismatch", "The path and the body name different threads. Nothing was saved.")
    if new.checkpoint_id in {".", ".."}:
        raise invalid("A checkpoint's id cannot be '.' or '..' here, because no path can contain it.")
    threads = services_of(request).threads(tenant_of(request))
    checkpoint_id = uuid4().hex if new.checkpoint_id is None else new.checkpoint_id
    prepared = threads.prepared(new.state, checkpoint_id, new.metadata, new.parent_id)
    return answer({"checkpoint_id": threads.save_once(thread_id, prepared)})


def load(request: Request) -> Response:
    """Return the state of a checkpoint, as it was saved."""
    threads = services_of(request).threads(tenant_of(request))
    thread_id, checkpoint_id = request.path_params["thread_id"], request.path_params["checkpoint_id"]
    text = threads.load_text(thread_id, checkpoint_id)
    if text is None:
        raise not_found("checkpoint")
    return answer_text(b'{"state":%b}' % text)


def list_checkpoints(request: Request) -> Response:
    """Return the ids of a thread's checkpoints; none for an unknown thread."""
    threads = services_of(request).threads(tenant_of(request))
    thread_id, limit = request.path_params["thread_id"], request.state.query.limit
    return answer({"checkpoints": threads.list_checkpoints(thread_id, limit)})


def delete(request: Request) -> Response:
    """Delete a checkpoint, or a thread."""
    threads = services_of(request).threads(tenant_of(request))
    thread_id, checkpoint_id = request.path_params["thread_id"], request.path_params.get("checkpoint_id")
    if not threads.delete(thread_id, checkpoint_id):
        raise not_found("thread" if checkpoint_id is None else "checkpoint")
    return answer({"deleted": True})
