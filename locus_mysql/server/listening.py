"""One client's connection, under limits that Uvicorn by itself does not have: `Connection`."""

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
from .write_coalescing import Gathering

_MALFORMED = Problem(400, "malformed_request", "This is not HTTP/1.1 as RFC 9112 has it, or not all of it.")
_TOO_SLOW = Problem(408, "request_too_slow", "The request's line and headers did not arrive in time.")
_TOO_MANY = try_later("too_many_connections", "Too many clients are connected. Try again.")


class Connection(H11Protocol):
    """A connection that is closed when its client is too slow to ask, or to take the answer, or is one too many.

    Uvicorn times the pause between two requests only. A client that sends its headers byte by byte, or none, or does
    not read the answer, would keep its place for ever.
    """

    limits = Limits()
    #: Connections of clients that no request of a tenant came from, in the order in which they came.
    strangers: ClassVar[dict[Connection, None]] = {}
    #: How many connections each tenant has.
    tenants: ClassVar[Counter[Hashable]] = Counter()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in Uvicorn
        """A client has connected."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._known: Hashable = None
        self.strangers[self] = None
        super().connection_made(cast(asyncio.Transport, Gathering(transport, self.loop)))
        if len(self.connections) > self.limits.connections and not self._close_a_stranger():
            self._refuse(_TOO_MANY)
        else:
            self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        for timer in (self._head_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request has come."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._time_head()

    def eof_received(self) -> bool:  # type: ignore[override]  # Uvicorn's says nothing, and so closes the connection
        """The client sends nothing more; whether it may still wait for an answer to what it sent."""
        state, unread = self.conn.their_state, self.conn.trailing_data[0]
        if state is h11.SEND_BODY or (state is h11.IDLE and unread):
            self._refuse(_MALFORMED)
            return False
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_started:  # were it a stream, only writing would tell that nobody reads it
            return False
        if not unread:
            cycle.keep_alive = False
            # Most have left; some wait for the answer. Who carries the request out decides how long to believe that.
            cycle.scope["state"][SENDS_NO_MORE] = True
            cycle.message_event.set()
        return self.scheme != "https"  # TLS cannot be half closed

    def on_response_complete(self) -> None:
        """The answer is written, and the next request may come."""
        super().on_response_complete()
        self._time_head()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._know()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.limits.send_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read some."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def send_400_response(self, msg: str) -> None:
        """What came is no request."""
        self._refuse(_MALFORMED)

    def _time_head(self) -> None:
        """Have a head that is being waited for come in time; between bytes of one the time goes on."""
        waiting = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if waiting and self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.head_s, self._give_up)
        elif not waiting and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_a_stranger(self) -> bool:
        """Make room for a new client: close the connection of a stranger that waits; whether there was one.

        Strangers are clients from whom nothing came, or nothing that needs a token. Of the address that has most of
        their connections, the oldest is closed.
        """
        addresses = Counter(map(Connection._address, self.strangers))
        most = max(addresses.values(), default=0)
        for one in self.strangers:
            if one is not self and one._is_silent() and addresses[one._address()] == most:
                one.transport.abort()
                one._forget()
                one.connections.discard(one)
                return True
        return False

    def _is_silent(self) -> bool:
        """Whether nothing is being done for the client: the service waits for it, and has not let it in."""
        waits = self.cycle is None or self.cycle.response_complete or self.conn.their_state is h11.SEND_BODY
        return waits and self._tenant_of_request() is None

    def _tenant_of_request(self) -> Hashable:
        """Whose the request is that came last, if the service has let it in."""
        caller = (getattr(self, "scope", None) or {}).get("state", {}).get("caller")
        return None if caller is None else caller.tenant

    def _know(self) -> None:
        """Count the connection for the tenant whose request was answered; close it if the tenant has too many.

        A tenant may leave as many open as are free: one alone has half of them.
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
        self.strangers.pop(self, None)
        if self._known is not None:
            self.tenants[self._known] -= 1
            self._known = None

    def _address(self) -> str:
        """The client's, without the port."""
        return self.client[0] if self.client else ""

    def _give_up(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._refuse(_TOO_SLOW)

    def _refuse(self, problem: Problem) -> None:
        """Say why, if nothing else is being said, and close the connection."""
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
            REQUESTS.info("No request: %d, request %s", problem.status, request_id)
        self.transport.close()


def connections_under(limits: Limits) -> type[Connection]:
    """The class of connections that these limits hold for; Uvicorn makes the objects."""
    return type("LimitedConnection", (Connection,), {"limits": limits, "strangers": {}, "tenants": Counter()})
