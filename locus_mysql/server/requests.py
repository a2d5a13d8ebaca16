"""`Requests`: the middleware of every request. It adds ids, headers and logs, and splits the path before it is decoded.

Starlette decodes a path as a whole, and so cannot distinguish a slash within an id from one between two segments. Here
each segment is decoded on its own; `scope["path"]` then holds the segments percent-encoded, as `routing` matches them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .access import Hosts
from .bodies import ClientGone, check_head, drain, has_body
from .problems import Problem
from .routing import explanation, segments_of

if TYPE_CHECKING:
    from .routing import Endpoint

#: INFO: each answer, with the template of its path.
REQUESTS = logging.getLogger("locus_mysql.requests")

#: The attribute of a log record with the values of its message by name, for logs as JSON.
FIELDS = "locus_mysql_fields"

#: Request ids that a client may choose: nothing that could break a log or a header.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

#: Size of a piece of an answer, in bytes. The next piece is sent when the client has read the one before. A server
#: would buffer a whole body, and nobody would know whether it is read.
PIECE_BYTES = 262_144

#: Headers of every answer, unless its endpoint sets them itself.
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class Requests:
    """The middleware.

    Args:
        app: The application that answers.
        hosts: The host names that requests may be sent to.
        send_s: How long a client may leave a piece of an answer unread, in seconds.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts, send_s: float) -> None:
        self.app = app
        self.hosts = hosts
        self.send_s = send_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with ExitStack() as held:
            scope = {**scope, "state": {**scope.get("state", {})}}
            request = Request(scope, receive)
            given = request.headers.get("x-request-id", "")
            request.state.request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex
            request.state.endpoint = request.state.caller = None
            request.state.body_ended = not has_body(request)
            #: What is given back when the answer was sent.
            request.state.held = held
            began = time.monotonic()
            sending = _Sending(request, send, began, self.send_s)
            try:
                await self._answer(request, sending)
            except ClientGone:
                _log(request, 499, began)

    async def _answer(self, request: Request, send: Send) -> None:
        try:
            check_head(request)
            self.hosts.check(request)
            encoded = [quote(segment, safe="") for segment in segments_of(request.scope)]
        except Problem as problem:
            await explanation(request, problem)(request.scope, request.receive, send)
            return
        request.scope["path"] = "/".join([request.scope.get("root_path", "").rstrip("/"), *encoded])
        await self.app(request.scope, request.receive, send)


class _Sending:
    """Sends an answer: adds its headers, logs it, and sends large bodies in pieces.

    An answer to a request whose body was not read to its end closes the connection.
    """

    def __init__(self, request: Request, send: Send, began: float, send_s: float) -> None:
        self.request = request
        self.send = send
        self.began = began
        self.send_s = send_s
        self.drains = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self.send({**message, "headers": self._headers(message)})
            _log(self.request, message["status"], self.began)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        while len(body) > PIECE_BYTES:
            async with asyncio.timeout(self.send_s):
                await self.send({"type": "http.response.body", "body": body[:PIECE_BYTES], "more_body": True})
            body = memoryview(body)[PIECE_BYTES:]
        if self.drains and not more:
            await self.send({"type": "http.response.body", "body": bytes(body), "more_body": True})
            await drain(self.request)
            body = b""
        await self.send({"type": "http.response.body", "body": bytes(body), "more_body": more})

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        headers = list(message.get("headers", ()))
        existing = {name for name, _ in headers}
        headers.append((b"x-request-id", self.request.state.request_id.encode()))
        headers.extend(header for header in HEADERS if header[0] not in existing)
        if not self.request.state.body_ended:
            headers.append((b"connection", b"close"))
            self.drains = message["status"] != 408  # else the body's deadline has passed already
        return headers


def _log(request: Request, status: int, began: float) -> None:
    endpoint: Endpoint | None = request.state.endpoint
    caller = request.state.caller
    took_s = time.monotonic() - began
    method, template = (request.method, endpoint.template) if endpoint else ("?", "(no endpoint)")
    request.app.state.metrics.observe(method, template, status, took_s)
    name = caller.name if caller else "-"
    values = (method, template, status, took_s * 1000, request.state.request_id, name)
    names = ("method", "path", "status", "duration_ms", "request_id", "caller")
    fields = {FIELDS: dict(zip(names, values, strict=True))}
    REQUESTS.info("%s %s %d in %.1f ms, request %s, caller %s", *values, extra=fields)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line: time in UTC, level, logger, message, and the values of a request by name."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        fields = getattr(record, FIELDS, {})
        content |= {name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()}
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return json.dumps(content, ensure_ascii=False)
