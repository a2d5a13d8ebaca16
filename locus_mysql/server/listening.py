"""`ClientConnection`: a client's connection, with limits that Uvicorn lacks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from http import HTTPStatus
from typing import ClassVar, cast
from uuid import uuid4

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from .dispatching import HEADERS, REQUESTS, SENDS_NO_MORE
from .limits import Limits
from .problems import Problem, explained, try_later
from .write_coalescing import CoalescingTransport

_MALFORMED = Problem(400, "malformed_request", "The request is not complete and valid HTTP/1.1 (RFC 9112).")
_TOO_SLOW = Problem(408, "request_too_slow", "The request line and the headers did not arrive in time.")
_TOO_MANY = try_later("too_many_connections", "Too many clients are connected. Try again.")


class ClientConnection(H11Protocol):
    """A connection that is closed when its client sends or reads too slowly, or when there are too many connections.

    Uvicorn only limits the pause between two requests. A client that sends its headers byte by byte or not at all, or
    does not read the answer, would occupy its connection forever.
    """

    limits = Limits()
    #: Connections that have sent no authenticated request yet, oldest first.
    unauthenticated: ClassVar[dict[ClientConnection, None]] = {}
    #: Number of connections of each tenant.
    tenants: ClassVar[Counter[Hashable]] = Counter()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in Uvicorn
        """Handle a new client."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._known: Hashable = None
        self.unauthenticated[self] = None
        super().connection_made(cast(asyncio.Transport, CoalescingTransport(transport, self.loop)))
        if len(self.connections) > self.limits.connections and not self._close_oldest_unauthenticated():
            self._refuse(_TOO_MANY)
        else:
            self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        for timer in (self._head_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle received bytes of a request."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._time_head()

    def eof_received(self) -> bool:  # type: ignore[override]  # Uvicorn's says nothing, and so closes the connection
        """Handle a client that closed its sending side; return whether it may still wait for an answer."""
        state, unread = self.conn.their_state, self.conn.trailing_data[0]
        if state is h11.SEND_BODY or (state is h11.IDLE and unread):
            self._refuse(_MALFORMED)
            return False
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_started:  # of a stream, only a write would detect that it is not read
            return False
        if not unread:
            cycle.keep_alive = False
            # Most such clients have left, some wait for the answer. The dispatcher decides how long to assume the
            # latter.
            cycle.scope["state"][SENDS_NO_MORE] = True
            cycle.message_event.set()
        return self.scheme != "https"  # TLS connections cannot be half closed

    def on_response_complete(self) -> None:
        """Handle a complete answer; the next request may arrive."""
        super().on_response_complete()
        self._time_head()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._know()

    def pause_writing(self) -> None:
        """Handle a full send buffer: the client does not read."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.limits.send_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Handle a send buffer with room again: the client has read."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP request."""
        self._refuse(_MALFORMED)

    def _time_head(self) -> None:
        """Start the timer for a request's head. Further bytes of a head do not restart it."""
        waiting = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if waiting and self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.head_s, self._give_up)
        elif not waiting and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_oldest_unauthenticated(self) -> bool:
        """Close one idle connection of an unauthenticated client, to make room; return whether there was one.

        Unauthenticated are clients that have sent nothing, or nothing that needs a token. The oldest connection of the
        address with most of them is closed.
        """
        addresses = Counter(map(ClientConnection._address, self.unauthenticated))
        most = max(addresses.values(), default=0)
        for one in self.unauthenticated:
            if one is not self and one._is_silent() and addresses[one._address()] == most:
                one.transport.abort()
                one._forget()
                one.connections.discard(one)
                return True
        return False

    def _is_silent(self) -> bool:
        """Whether the client is unauthenticated and the service is waiting for it."""
        waits = self.cycle is None or self.cycle.response_complete or self.conn.their_state is h11.SEND_BODY
        return waits and self._tenant_of_request() is None

    def _tenant_of_request(self) -> Hashable:
        """The tenant of the last request, if it was authenticated."""
        caller = (getattr(self, "scope", None) or {}).get("state", {}).get("caller")
        return None if caller is None else caller.tenant

    def _know(self) -> None:
        """Count the connection for the tenant of its last request; close it if the tenant has too many.

        A tenant may have as many connections as are free, so a single tenant gets half of all.
        """
        tenant = self._tenant_of_request()
        if tenant is None:
            return
        if self._known is None:
            self._forget()
            self._known = tenant
            self.tenants[tenant] += 1
        if self.tenants[self._known] > max(1, self.limits.connections - len(self.connections)):
            self.transport.close()

    def _forget(self) -> None:
        self.unauthenticated.pop(self, None)
        if self._known is not None:
            self.tenants[self._known] -= 1
            self._known = None

    def _address(self) -> str:
        """The client's address without the port."""
        return self.client[0] if self.client else ""

    def _give_up(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._refuse(_TOO_SLOW)

    def _refuse(self, problem: Problem) -> None:
        """Send an error unless an answer is being sent, and close the connection."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            request_id = uuid4().hex
            answer = explained(problem, request_id)
            headers = [*answer.raw_headers, (b"x-request-id", request_id.encode()), *HEADERS, (b"connection", b"close")]
            reason = HTTPStatus(problem.status).phrase
            for event in (
                h11.Response(status_code=problem.status, headers=headers, reason=reason),
                h11.Data(data=bytes(answer.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            REQUESTS.info("Refused bytes that are no request: status %d, request %s", problem.status, request_id)
        self.transport.close()


def connections_under(limits: Limits) -> type[ClientConnection]:
    """Return the class of connections with these limits, which Uvicorn instantiates."""
    return type(
        "LimitedConnection", (ClientConnection,), {"limits": limits, "unauthenticated": {}, "tenants": Counter()}
    )
