"""From a request to its answer, in the order in which things are checked: `Dispatcher`."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from collections.abc import Hashable, Sequence
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..engine.logs import told
from .bodies import (
    FORM_BYTES,
    ClientGone,
    aside,
    check_head,
    check_no_body,
    has_body,
    json_of,
    parsed,
    query_of,
    read_body,
)
from .hosts import Hosts
from .limits import Limits
from .problems import Problem, not_found, problem_of, try_later
from .routing import Endpoint, Router, segments_of
from .sending import PIECE_BYTES, in_pieces, send_and_close
from .shares import Share, Shares

#: What was answered: INFO, with the template of the path. Something went wrong inside, or what is stored is damaged:
#: ERROR, without what either holds.
REQUESTS = logging.getLogger("locus_mysql.requests")

#: A request's id that a client may choose: nothing that could break a log or a header.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

#: What every answer has, unless its endpoint says otherwise.
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class Dispatcher:
    """The application proper, within Starlette.

    Args:
        routers: The first that knows a path answers.
        limits: What is refused.
        hosts: Where requests may be sent to.
    """

    def __init__(self, routers: Sequence[Router], limits: Limits, hosts: Hosts) -> None:
        self.routers = list(routers)
        self.limits = limits
        self.hosts = hosts
        self.requests = Shares(limits.requests)
        self.bytes = Shares(limits.bodies_bytes)

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
        request.state.answered = Share()
        try:
            response = await self._answer(request, request_id)
        except ClientGone:
            _log(request, 499, began)
            return
        there = {name for name, _ in response.raw_headers}
        response.raw_headers.append((b"x-request-id", request_id.encode()))
        response.raw_headers.extend(header for header in HEADERS if header[0] not in there)
        _log(request, response.status_code, began)
        try:
            if request.state.body_ended:
                await response(scope, receive, in_pieces(send))
            else:
                await send_and_close(request, response, send)
        finally:
            request.state.answered.give_back()

    async def _answer(self, request: Request, request_id: str) -> Response:
        """The answer, also to what goes wrong."""
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
        share = Share()
        if endpoint.access != "open":
            request.state.caller = caller = router.authenticate(request)
            share = Share((caller.tenant, caller.name))
            if endpoint.access == "write" and not caller.may_write:
                raise Problem(403, "read_only", "This token may read, but not write.")
        try:
            await self._read(request, endpoint, share)
            share.take(self.requests, 1)
            response = await self._within_time(request, endpoint)
        finally:
            share.give_back()
        self._hold(request, response, share.caller)
        return response

    def _hold(self, request: Request, response: Response, caller: Hashable) -> None:
        """Count a large answer until it is sent, or clients that ask and do not read would fill the memory."""
        size = len(getattr(response, "body", b""))
        if size > PIECE_BYTES:
            request.state.answered = Share(caller)
            request.state.answered.take(self.bytes, min(size, self.bytes.of_one))

    async def _read(self, request: Request, endpoint: Endpoint, share: Share) -> None:
        """Check and parse what the request brings along."""
        query = query_of(request, endpoint.lists)
        if endpoint.query is not None:
            request.state.query = parsed(endpoint.query, query, "The query")
        elif query and endpoint.body != "form":
            raise Problem(400, "invalid_input", "There is no query here.")
        if endpoint.body is None:
            check_no_body(request)
            return

        def hold(size: int) -> None:
            share.take(self.bytes, size)

        if endpoint.body == "form":
            kind = "application/x-www-form-urlencoded"
            request.state.body = await read_body(request, kind, FORM_BYTES, self.limits, hold)
        else:
            body = await read_body(request, "application/json", self.limits.body_bytes, self.limits, hold)
            value = await aside(request, json_of, body, self.limits)
            request.state.body = parsed(endpoint.body, value, "The body")

    async def _within_time(self, request: Request, endpoint: Endpoint) -> Response:
        try:
            async with asyncio.timeout(self.limits.request_s) as limit:
                return await endpoint.handler(request)
        except TimeoutError:
            if not limit.expired():
                raise
            raise try_later(
                "timeout",
                f"This took longer than {self.limits.request_s:g} s and was given up; a write may have been carried "
                "out. Repeat the request.",
            ) from None


def _log_failure(error: Exception, problem: Problem, request_id: str) -> None:
    """Log what went wrong, without its words, which may quote data; of what nobody expected, also where."""
    where = "\n" + "".join(traceback.format_tb(error.__traceback__)) if problem.code == "internal_error" else ""
    REQUESTS.error("Request %s failed: %s.%s", request_id, told(error), where)


def _log(request: Request, status: int, began: float) -> None:
    endpoint: Endpoint | None = request.state.endpoint
    caller = request.state.caller
    REQUESTS.info(
        "%s %s %d in %.1f ms, request %s, caller %s",
        request.method if endpoint else "?",
        endpoint.template if endpoint else "(no endpoint)",
        status,
        (time.monotonic() - began) * 1000,
        request.state.request_id,
        caller.name if caller else "-",
    )
