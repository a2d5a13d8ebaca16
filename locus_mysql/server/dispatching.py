"""`Dispatcher`: turns a request into its answer. Its methods are in the order in which they handle a request.

`__call__` adds ids, headers and logs; `_answer` finds the endpoint; `_carry_out` checks the caller and reads the body;
`_within_time` limits the time; `_perform` chooses this process (`_perform_here`) or a request process, in which
`answer_in_subprocess` answers.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..engine.logs import loggable, loggable_setup
from ..engine.read_limit import limited_reads
from ..errors import AnswerTooLarge, SetupError
from .bodies import (
    FORM_BYTES,
    ClientGone,
    call_unblocked,
    check_head,
    check_no_body,
    has_body,
    is_small,
    json_of,
    parsed,
    query_of,
    read_body,
)
from .hosts import Hosts
from .limits import Limits
from .problems import Problem, not_found, problem_of, try_later
from .processes import Processes
from .quotas import FairSemaphore, Quota, Quotas
from .routing import Endpoint, Router, segments_of
from .sending import PIECE_BYTES, in_pieces, send_and_close
from .services import services_of

#: INFO: each answer, with the template of its path. ERROR: an internal error or damaged rows, without their content.
REQUESTS = logging.getLogger("locus_mysql.requests")

#: The attribute of a log record with the values of its message by name, for logs as JSON.
FIELDS = "locus_mysql_fields"

#: Request ids that a client may choose: nothing that could break a log or a header.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

#: Bytes that a request may read from the database in the service's own process. A request that needs more is started
#: again in a request process.
SMALL_READ_BYTES = 262_144

#: Number of requests remembered as large. A remembered request goes to a request process at once.
KNOWN_LARGE = 1_000

#: Seconds before the service begins to check whether the client still waits.
LOOK_AFTER_S = 0.25

#: Seconds for which a client that closed its sending side is still assumed to wait for its answer.
HALF_CLOSED_S = 1.0

#: Set in a request's state by the connection when its client has closed its sending side. Most such clients have left.
SENDS_NO_MORE = "sends_no_more"

#: Headers of every answer, unless its endpoint sets them itself.
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class _Large(Exception):
    """The request is too large for the service's own process."""


class Dispatcher:
    """The ASGI application inside Starlette.

    Args:
        routers: The first router that has the path of a request handles it.
        limits: The limits of requests.
        hosts: The host names that requests may be sent to.
        database_connections: Number of database connections that requests may use at once.
    """

    def __init__(self, routers: Sequence[Router], limits: Limits, hosts: Hosts, database_connections: int) -> None:
        self.routers = list(routers)
        self.limits = limits
        self.hosts = hosts
        self.requests = Quotas(limits.requests)
        self.bytes = Quotas(limits.bodies_bytes)
        self.database_connections = FairSemaphore(database_connections)
        #: The processes for requests that may take long; None: this process carries them out.
        self.processes: Processes | None = None
        self._large: OrderedDict[Hashable, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        began = time.monotonic()
        given = request.headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex
        request.state.request_id = request_id
        request.state.endpoint = None
        request.state.caller = None
        request.state.body_ended = not has_body(request)
        request.state.answered = Quota()
        try:
            response = await self._answer(request, request_id)
        except ClientGone:
            _log(request, 499, began)
            return
        existing = {name for name, _ in response.raw_headers}
        response.raw_headers.append((b"x-request-id", request_id.encode()))
        response.raw_headers.extend(header for header in HEADERS if header[0] not in existing)
        _log(request, response.status_code, began)
        try:
            if request.state.body_ended:
                await response(scope, receive, in_pieces(send))
            else:
                await send_and_close(request, response, send)
        finally:
            request.state.answered.give_back()

    async def _answer(self, request: Request, request_id: str) -> Response:
        """Return the answer, also when the request fails."""
        router = self.routers[-1 if "text/html" in request.headers.get("accept", "") else 0]
        try:
            check_head(request)
            self.hosts.check(request)
            segments = segments_of(request.scope)
            for one in self.routers:
                found = one.find(request.method, segments)
                if found is not None:
                    router = one
                    request.scope["path_params"] = found[1]
                    request.state.endpoint = found[0]
                    return await self._carry_out(request, router, found[0])
            raise not_found("path")
        except ClientGone:
            raise
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500 or problem.code == "not_set_up":
                _log_failure(error, problem, request_id)
            return router.explain(request, problem, request_id)

    async def _carry_out(self, request: Request, router: Router, endpoint: Endpoint) -> Response:
        share = Quota()
        if endpoint.access != "open":
            request.state.caller = caller = router.authenticate(request)
            share = Quota(caller.tenant)
            if endpoint.access == "write" and not caller.may_write:
                raise Problem(403, "read_only", "This token may read, but not write.")
        request.state.answered = Quota(share.tenant)
        try:
            self._parse_query(request, endpoint)
            body = await self._read(request, endpoint, share)
            share.take(self.requests, 1)
            return await self._within_time(request, endpoint, body, share.tenant)
        finally:
            share.give_back()

    async def answer_in_subprocess(self, scope: Scope, body: bytes) -> Response:
        """Answer a request in a request process. The service has checked it and read its body already."""
        request = Request(scope)
        request.state.body_bytes = len(body)
        segments = segments_of(scope)
        router, (endpoint, path_params) = next(
            (one, found) for one in self.routers if (found := one.find(request.method, segments)) is not None
        )
        scope["path_params"] = path_params
        try:
            self._parse_query(request, endpoint)
            await self._parse_body(request, endpoint, body)
            with limited_reads(self.limits.answer_bytes):
                response = await endpoint.respond(request)
            self._check_size(response)
        except MemoryError:
            raise
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500 or problem.code == "not_set_up":
                _log_failure(error, problem, request.state.request_id)
            return router.explain(request, problem, request.state.request_id)
        return response

    def _parse_query(self, request: Request, endpoint: Endpoint) -> None:
        query = query_of(request, endpoint.lists)
        if endpoint.query is not None:
            request.state.query = parsed(endpoint.query, query, "The query")
        elif query and endpoint.body != "form":
            raise Problem(400, "invalid_input", "This endpoint takes no query.")

    async def _read(self, request: Request, endpoint: Endpoint, share: Quota) -> bytes:
        """Read the body of a request. Its quota is taken beforehand if its size is announced."""
        if endpoint.body is None:
            check_no_body(request)
            return b""

        def hold(size: int) -> None:
            share.take(self.bytes, size)

        if endpoint.body == "form":
            return await read_body(request, "application/x-www-form-urlencoded", FORM_BYTES, self.limits, hold)
        return await read_body(request, "application/json", self.limits.body_bytes, self.limits, hold)

    async def _parse_body(self, request: Request, endpoint: Endpoint, body: bytes) -> None:
        if endpoint.body == "form":
            request.state.body = body
        elif endpoint.body is not None:
            value = await call_unblocked(request, json_of, body, self.limits)
            request.state.body = parsed(endpoint.body, value, "The body")

    async def _within_time(self, request: Request, endpoint: Endpoint, body: bytes, tenant: Hashable) -> Response:
        try:
            async with asyncio.timeout(self.limits.request_s) as limit, _while_wanted(request, endpoint):
                return await self._perform(request, endpoint, body, tenant)
        except TimeoutError:
            if not limit.expired():
                raise
            raise try_later(
                "timeout",
                f"The request took longer than {self.limits.request_s:g} s and was abandoned; a write may have been "
                "carried out. Repeat the request.",
            ) from None

    async def _perform(self, request: Request, endpoint: Endpoint, body: bytes, tenant: Hashable) -> Response:
        """Carry out a request in this process if it is small, else in a request process."""
        if endpoint.access == "open":
            await self._parse_body(request, endpoint, body)
            return await endpoint.respond(request)
        processes = None if endpoint.runs == "event_loop" else self.processes
        if processes is None:
            return await self._perform_here(request, endpoint, body, tenant, self.limits.answer_bytes)
        key = (tenant, request.method, request.scope["path"])
        if endpoint.runs == "unless_large" and is_small(body, endpoint.small_bytes) and key not in self._large:
            with suppress(_Large):
                return await self._perform_here(request, endpoint, body, tenant, SMALL_READ_BYTES)
            self._large[key] = None
            if len(self._large) > KNOWN_LARGE:
                self._large.popitem(last=False)

        def hold(size: int) -> None:
            request.state.answered.take(self.bytes, size)

        return await processes.run(request, body, tenant, hold)

    async def _perform_here(
        self, request: Request, endpoint: Endpoint, body: bytes, tenant: Hashable, most_read: int
    ) -> Response:
        """Carry out a request in this process.

        Raises:
            _Large: It would read more than this process allows, and has written nothing.
        """
        await self._parse_body(request, endpoint, body)
        with limited_reads(most_read, self.database_connections, tenant) as limit:
            try:
                response = await endpoint.respond(request)
            except AnswerTooLarge:
                if limit.wrote or most_read == self.limits.answer_bytes:
                    raise
                raise _Large from None
        self._hold(request, response)
        return response

    def _hold(self, request: Request, response: Response) -> None:
        """Count a large answer until it is sent. Otherwise clients that never read would fill the memory."""
        size = self._check_size(response)
        if size > PIECE_BYTES:
            request.state.answered.take(self.bytes, size)

    def _check_size(self, response: Response) -> int:
        size = len(getattr(response, "body", b""))
        if size > self.limits.answer_bytes:
            raise Problem(
                400,
                "answer_too_large",
                f"The answer is larger than {self.limits.answer_bytes} bytes. Request less, for example smaller pages.",
            )
        return size


@asynccontextmanager
async def _while_wanted(request: Request, endpoint: Endpoint) -> AsyncIterator[None]:
    """Cancel the block if it only reads and its client has left. A write continues.

    Raises:
        ClientGone: The client has left.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    inspection: list[asyncio.Task[None]] = []
    gone = False

    async def look() -> None:
        nonlocal gone
        with suppress(ClientGone):
            while (await request.receive())["type"] != "http.disconnect":
                if getattr(request.state, SENDS_NO_MORE, False):
                    await asyncio.sleep(HALF_CLOSED_S)
                    break
        gone = True
        if task is not None:
            task.cancel()

    def begin() -> None:
        inspection.append(loop.create_task(look()))

    timer = None
    if endpoint.access != "write" and request.state.body_ended:
        timer = loop.call_later(LOOK_AFTER_S, begin)
    try:
        yield
    except asyncio.CancelledError:
        if gone and task is not None and task.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        if timer is not None:
            timer.cancel()
        for one in inspection:
            one.cancel()


def _log_failure(error: Exception, problem: Problem, request_id: str) -> None:
    """Log a failure without texts that may quote data: its remedy if that is known, else its traceback."""
    if isinstance(error, SetupError):
        words = loggable_setup(error)
    elif problem.code == "internal_error":
        words = f"{loggable(error)}.\n{''.join(traceback.format_tb(error.__traceback__))}"
    else:
        words = loggable(error)
    REQUESTS.error("Request %s failed: %s", request_id, words)


def _log(request: Request, status: int, began: float) -> None:
    endpoint: Endpoint | None = request.state.endpoint
    caller = request.state.caller
    took_s = time.monotonic() - began
    method, template = (request.method, endpoint.template) if endpoint else ("?", "(no endpoint)")
    services_of(request).metrics.observe(method, template, status, took_s)
    name = caller.name if caller else "-"
    values = (method, template, status, took_s * 1000, request.state.request_id, name)
    names = ("method", "path", "status", "duration_ms", "request_id", "caller")
    fields = {FIELDS: dict(zip(names, values, strict=True))}
    REQUESTS.info("%s %s %d in %.1f ms, request %s, caller %s", *values, extra=fields)
