"""The endpoints that ``locus.memory.backends.HTTPCheckpointer`` calls.

httpx takes dot segments out of a path, as RFC 3986 says, and a dot cannot be escaped from that: for the thread ``.`` it
asks for ``/threads/checkpoints``, and for ``..`` for ``/checkpoints``. So there are these paths, too. Checkpoints of
such ids are refused, as nobody could ask for them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import uuid4

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from .answers import answer, answer_text
from .api.families import is_there
from .api.models import Gone
from .bodies import aside
from .problems import Problem, invalid, not_found
from .routing import Endpoint, Handler
from .services import services_of, tenant_of

#: The family that threads are kept in.
FAMILY: Final = "agents"

#: The most ids that one answer lists. A larger limit is taken as this one: an error would look to the client as a
#: thread without checkpoints.
MOST_LISTED = 100_000

#: How the paths of a thread's checkpoints begin, with the thread if the path cannot name it.
_PLACES = (("/threads/{thread_id}/checkpoints", None), ("/threads/checkpoints", "."), ("/checkpoints", ".."))


class NewCheckpoint(BaseModel):
    """What a client saves. Fields that are not known here are left alone."""

    model_config = ConfigDict(strict=True)

    checkpoint_id: Annotated[str, Field(description="1 to 128 characters; a random one if left out")] | None = None
    thread_id: Annotated[str, Field(description="the one of the path")] | None = None
    created_at: Annotated[str, Field(description="not kept: the service has a clock")] | None = None
    parent_id: (
        Annotated[str, Field(description="the checkpoint that this one goes on from; the thread's newest if left out")]
        | None
    ) = None
    state: dict[str, Any]
    metadata: Annotated[dict[str, Any], Field(description="at most 65,536 bytes as JSON")] | None = None


class Saved(BaseModel):
    """Which checkpoint a state was saved as."""

    checkpoint_id: str


class State(BaseModel):
    """A checkpoint's state."""

    state: dict[str, Any]


class Listing(BaseModel):
    """Ids of a thread's checkpoints, newest first."""

    checkpoints: list[str]


def whole_number(value: object) -> object:
    """A number of a query. What is too large is cut to the most that is listed."""
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit()):
            raise ValueError("must be a whole number")
        return min(int(value[:20]), MOST_LISTED)
    return value


class HowMany(BaseModel):
    """The query of a listing."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, BeforeValidator(whole_number), Field(ge=0, description="at most this many")] = 10


def locus_endpoints() -> list[Endpoint]:
    """All of them."""
    endpoints = []
    for path, thread_id in _PLACES:
        one = f"{path}/{{checkpoint_id}}"
        endpoints += [
            Endpoint(
                "POST", path, _of(thread_id, save), "write", "Save a state as the newest checkpoint of a thread",
                body=NewCheckpoint, answer=Saved,
            ),
            Endpoint(
                "GET", path, _of(thread_id, list_checkpoints), "read", "Ids of a thread's checkpoints, newest first",
                query=HowMany, answer=Listing,
            ),
            Endpoint("DELETE", path, _of(thread_id, delete), "write", "Delete a thread", answer=Gone),
            Endpoint("GET", one, _of(thread_id, load), "read", "The state of a checkpoint", answer=State),
            Endpoint("DELETE", one, _of(thread_id, delete), "write", "Delete a checkpoint", answer=Gone),
        ]  # fmt: skip
    return endpoints


def _of(thread_id: str | None, handler: Handler) -> Handler:
    """A handler, for a path that names no thread but means this one."""
    if thread_id is None:
        return handler

    async def handle(request: Request) -> Response:
        request.path_params["thread_id"] = thread_id
        return await handler(request)

    return handle


async def save(request: Request) -> Response:
    """Save a state. Repeated with the same content, it changes nothing and answers as before."""
    new: NewCheckpoint = request.state.body
    thread_id = request.path_params["thread_id"]
    if new.thread_id is not None and new.thread_id != thread_id:
        raise Problem(400, "thread_mismatch", "The path and the body name different threads. Nothing was saved.")
    if new.checkpoint_id in {".", ".."}:
        raise invalid("A checkpoint's id cannot be '.' or '..' here, as no path could name it.")
    threads = services_of(request).threads(tenant_of(request))
    checkpoint_id = uuid4().hex if new.checkpoint_id is None else new.checkpoint_id
    prepared = await aside(request, threads.prepared, new.state, checkpoint_id, new.metadata, new.parent_id)
    return answer({"checkpoint_id": await threads.save_once(thread_id, prepared)})


async def load(request: Request) -> Response:
    """The state of a checkpoint, as it was saved."""
    threads = services_of(request).threads(tenant_of(request))
    thread_id, checkpoint_id = request.path_params["thread_id"], request.path_params["checkpoint_id"]
    text = await threads.load_text(thread_id, checkpoint_id) if await is_there(request, FAMILY) else None
    if text is None:
        raise not_found("checkpoint")
    return answer_text(b'{"state":%b}' % text)


async def list_checkpoints(request: Request) -> Response:
    """Ids of a thread's checkpoints; of one that does not exist, none."""
    threads = services_of(request).threads(tenant_of(request))
    thread_id, limit = request.path_params["thread_id"], request.state.query.limit
    there = await is_there(request, FAMILY)
    return answer({"checkpoints": await threads.list_checkpoints(thread_id, limit) if there else []})


async def delete(request: Request) -> Response:
    """Delete a checkpoint, or a thread."""
    threads = services_of(request).threads(tenant_of(request))
    thread_id, checkpoint_id = request.path_params["thread_id"], request.path_params.get("checkpoint_id")
    if not (await is_there(request, FAMILY) and await threads.delete(thread_id, checkpoint_id)):
        raise not_found("thread" if checkpoint_id is None else "checkpoint")
    return answer({"deleted": True})
