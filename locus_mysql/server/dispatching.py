"""`Dispatcher`: carries out the requests of endpoints, which Starlette's routes call.

The event loop checks the caller and reads the body; a worker thread parses the body, carries out the operation on
blocking stores, and encodes the answer. So the event loop only speaks HTTP.
"""

from __future__ import annotations

import asyncio
import functools
import math
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from inspect import iscoroutinefunction
from threading import Lock
from typing import Any, Self, TypeVar, cast

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..drivers.interface import WATCH, ReadLimitReached
from ..engine.logs import loggable, loggable_setup
from ..errors import SetupError
from .bodies import (
    FORM_BYTES,
    LARGE_BYTES,
    ClientGone,
    announces_large,
    check_no_body,
    json_of,
    parsed,
    query_of,
    read_body,
)
from .limits import Limits
from .problems import Problem, problem_of, try_later
from .requests import PIECE_BYTES, REQUESTS
from .routing import Endpoint, Group, path_of

T = TypeVar("T")

#: Seconds for which large work waits before each step: about as long as a small request takes, so that it need not wait
#: for a long call each time that it takes Python's lock.
LET_OTHERS_S = 0.005


class Dispatcher:
    """Carries out requests.

    Args:
        limits: The limits of requests.
        admission: Decides which of them run at once.
    """

    def __init__(self, limits: Limits, admission: Admission) -> None:
        self.limits = limits
        self.admission = admission
        self._large = threading.Lock()
        self._threads = anyio.CapacityLimiter(math.inf)  # `admission` limits them

    def routes(self, groups: Sequence[Group]) -> list[Route]:
        """Return a route for each path; of paths of one length, those with the fewest names come first."""
        paths: dict[str, dict[str, tuple[Group, Endpoint]]] = {}
        for group in groups:
            for endpoint in group.endpoints:
                paths.setdefault(endpoint.template, {})[endpoint.method] = (group, endpoint)
        ordered = sorted(paths.items(), key=lambda one: (-one[0].count("/"), one[0].count("{")))
        return [self._route(template, methods) for template, methods in ordered]

    def _route(self, template: str, methods: dict[str, tuple[Group, Endpoint]]) -> Route:
        async def respond(request: Request) -> Response:
            group, endpoint = methods["GET" if request.method == "HEAD" else request.method]
            return await self._respond(request, group, endpoint)

        return Route(path_of(template), respond, methods=[*methods])

    async def _respond(self, request: Request, group: Group, endpoint: Endpoint) -> Response:
        """Return the answer.

        Raises:
            Problem: The request was refused, or failed.
            ClientGone: No one waits for the answer.
        """
        request.state.endpoint, request.state.group = endpoint, group
        try:
            return await self._carry_out(request, group, endpoint)
        except (ClientGone, Problem):
            raise
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500 or problem.code == "not_set_up":
                _log_failure(error, problem, request.state.request_id)
            raise problem from error

    async def _carry_out(self, request: Request, group: Group, endpoint: Endpoint) -> Response:
        tenant, held = "", request.state.held
        if endpoint.access != "open":
            request.state.caller = caller = group.authenticate(request)
            tenant = caller.tenant
            if endpoint.access == "write" and not caller.may_write:
                raise Problem("read_only", "This token may read, but not write.")
        query = query_of(request, endpoint.lists)
        request.state.query = None if endpoint.query is None else parsed(endpoint.query, query, "The query")
        if query and endpoint.query is None and not endpoint.form:
            raise Problem("invalid_input", "This endpoint takes no query.")
        if iscoroutinefunction(endpoint.handler):
            request.state.body = await self._read(request, endpoint)
            return await self._in_time(cast(Coroutine[Any, Any, Response], endpoint.call(request)))
        # A large body is read when its turn has come, as bodies that wait would fill the memory.
        body = None if announces_large(request) else await self._read(request, endpoint)
        await self._in_time(self.admission.begin(tenant, held))
        if body is None:
            body = await self._read(request, endpoint)
        response = await self._in_thread(functools.partial(self._work, request, endpoint, body), held)
        if len(getattr(response, "body", b"")) <= PIECE_BYTES:
            held.close()  # a larger one keeps its turn until it is sent, as answers that wait would fill the memory
        return response

    async def _read(self, request: Request, endpoint: Endpoint) -> bytes:
        if endpoint.form:
            return await read_body(request, "application/x-www-form-urlencoded", FORM_BYTES, self.limits)
        if endpoint.body is None:
            check_no_body(request)
            return b""
        return await read_body(request, "application/json", self.limits.body_bytes, self.limits)

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout(self.limits.request_s) as limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._too_late() from None

    async def _in_thread(self, work: Callable[[], Response], held: ExitStack) -> Response:
        """Carry out work in a thread. A thread that takes too long keeps its turn until it ends."""
        running = asyncio.ensure_future(anyio.to_thread.run_sync(work, limiter=self._threads))
        await asyncio.wait({running}, timeout=self.limits.request_s)
        if running.done():
            return running.result()
        kept = held.pop_all()

        def end(ended: asyncio.Future[Response]) -> None:
            kept.close()
            if not ended.cancelled():
                ended.exception()  # else asyncio would log that nobody asked for it

        running.add_done_callback(end)
        raise self._too_late()

    def _too_late(self) -> Problem:
        return try_later(
            "timeout",
            f"The request took longer than {self.limits.request_s:g} s and was abandoned; a write may have been "
            "carried out. Repeat the request.",
        )

    def _work(self, request: Request, endpoint: Endpoint, body: bytes) -> Response:
        """Parse the body, carry out the operation, and encode its answer, in a worker thread."""
        with LargeWork(self._large, self.limits.answer_bytes) as work:
            work.go_on(len(body))
            try:
                request.state.body = body
                if endpoint.body is not None:
                    request.state.body = parsed(endpoint.body, json_of(body, self.limits), "The body")
                    work.go_on(len(body))
                response = endpoint.respond(request)
            except Exception as error:
                _free_values(error)
                raise
            finally:
                request.state.body = None  # frees its values while this thread has its turn
        if len(response.body) > self.limits.answer_bytes:
            raise Problem(
                "answer_too_large",
                f"The answer is larger than {self.limits.answer_bytes} bytes. Request less, for example smaller pages.",
            )
        return response


def _free_values(error: BaseException | None) -> None:
    """Free the variables of the calls that an error ended: else a body's values would be freed in the event loop."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _log_failure(error: Exception, problem: Problem, request_id: str) -> None:
    """Log a failure without texts that may quote data: its remedy if that is known, else its traceback."""
    if isinstance(error, SetupError):
        words = loggable_setup(error)
    elif problem.code == "internal_error":
        words = f"{loggable(error)}.\n{''.join(traceback.format_tb(error.__traceback__))}"
    else:
        words = loggable(error)
    REQUESTS.error("Request %s failed: %s", request_id, words)


class Admission:
    """Limits the requests that are accepted, and the operations in worker threads: for all, and for each tenant.

    Each tenant may have half of both. Further requests are refused; further operations wait.

    Args:
        requests: The number of requests accepted at once.
        operations: The number of operations carried out at once, each with a thread and a database connection.
    """

    def __init__(self, requests: int, operations: int) -> None:
        self._requests = requests
        self._operations = CapacityLimiter(operations)
        self._of_tenant: defaultdict[str, CapacityLimiter] = defaultdict(
            lambda: CapacityLimiter(max(1, operations // 2))
        )

    async def begin(self, tenant: str, held: ExitStack) -> None:
        """Wait until another operation of a tenant may begin; it ends when ``held`` is closed.

        Raises:
            Problem: Too many requests are in progress, of this tenant or in total.
        """
        mine = self._of_tenant[tenant]
        if _accepted(mine) >= max(1, self._requests // 2):
            raise try_later("too_many_requests", "Too many of your requests are in progress.", seconds=1)
        if sum(map(_accepted, self._of_tenant.values())) >= self._requests:
            raise try_later("busy", "Too many requests are in progress.", seconds=1)
        for limiter in (mine, self._operations):
            await limiter.acquire_on_behalf_of(held)
            held.callback(limiter.release_on_behalf_of, held)


def _accepted(limiter: CapacityLimiter) -> int:
    """Return the number of requests that wait for a limiter or have passed it."""
    found = limiter.statistics()
    return found.borrowed_tokens + found.tasks_waiting


class LargeWork:
    """The work of one request in a worker thread; of large work, one thread at a time uses the processor.

    Python's global lock lets one thread run, and a call that parses or encodes megabytes keeps it throughout. Several
    threads with such calls would make a small request wait for each of them. A thread that waits for the database lets
    the next one go on. It is the `CallWatch` of the request's calls.

    Args:
        lock: The lock that all requests share.
        most_bytes: The largest answer of the database.
    """

    def __init__(self, lock: Lock, most_bytes: int) -> None:
        self._lock = lock
        self._most_bytes = most_bytes
        self._received = 0
        self._is_large = self._has_lock = False

    def go_on(self, size: int) -> None:
        """Use the processor, for data of this size in bytes. Large work waits for other large work, and a moment."""
        self._is_large = self._is_large or size > LARGE_BYTES
        if not self._is_large:
            return
        if not self._has_lock:
            self._has_lock = self._lock.acquire()
        time.sleep(LET_OTHERS_S)

    def begin(self) -> None:
        """Let others use the processor, while this thread waits for the database."""
        self._received = 0
        if self._has_lock:
            self._has_lock = False
            self._lock.release()

    def received(self, size: int) -> None:
        """Count a piece of the database's answer."""
        self._received += size
        if self._received > self._most_bytes:
            raise ReadLimitReached(self._most_bytes)

    def end(self) -> None:
        """Go on, with the whole answer."""
        self.go_on(self._received)

    def __enter__(self) -> Self:
        self._token = WATCH.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        WATCH.reset(self._token)
        self.begin()
