"""Connections to the primary among several servers: `Cluster` leaves a server that is no longer it; `Watch` looks.

A server may cease to be the primary while connections to it are open. It then continues to answer reads, and soon lacks
writes of the new primary. So each packet begins with a statement that fails there, and the server executes nothing that
follows it in the packet. A primary that is frozen answers nothing: `watch` detects that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary, ref

from ...config import ConnectionOptions, Endpoint
from ...dialect import Statement
from ...dialect.server_roles import GROUP, ONLY_WHERE_WRITTEN, SPLITS, WRITES
from ...drivers.interface import Driver, DriverError, Result, ServerError
from ...errors import LocusMySQLError
from ..commands import Close, CommandGenerator, Connection, Execute
from ..failures import GIVEN_UP, NO_SEVERAL_STATEMENTS, READ_ONLY
from ..operation import read_rows
from ..passwords import open_connection
from ..pool import ServerConnection, abort_all
from .topology import (
    BRIEFLY_S,
    LeadsToSecondary,
    NoPrimary,
    NotAMember,
    Topology,
    as_read_only,
    check_answers,
    is_read_only,
)

if TYPE_CHECKING:
    from ..pool import Pool
    from ..sides import Side


class PrimaryConnection(ServerConnection):
    """A connection on which each packet fails once its server is no longer the primary.

    Args:
        connection: The driver's.
        endpoint: The server it leads to.
        watch: Watches its calls.
    """

    wraps = True

    def __init__(self, connection: Connection, endpoint: Endpoint, watch: Watch) -> None:
        super().__init__(connection, endpoint)
        self._watch = watch

    def execute(self, statements: Sequence[Statement]) -> CommandGenerator[list[Result]]:
        """Send statements in a packet that fails on a server that takes no writes."""
        try:
            self._watch.begin(self)
            return (yield from execute_where_written(super().execute, self.endpoint, statements))
        finally:
            self._watch.end(self)

    def ping(self) -> CommandGenerator[None]:
        """Check that the server answers, as a call that is watched."""
        try:
            self._watch.begin(self)
            yield from super().ping()
        finally:
            self._watch.end(self)


class RouterConnection(ServerConnection):
    """A connection through MySQL Router, which leads new connections to the primary."""

    wraps = True

    def execute(self, statements: Sequence[Statement]) -> CommandGenerator[list[Result]]:
        """Send statements in a packet that fails on a server that takes no writes.

        Raises:
            LeadsToSecondary: The server behind it is no longer the primary.
        """
        try:
            return (yield from execute_where_written(super().execute, self.endpoint, statements))
        except ServerError as error:
            if error.errno not in READ_ONLY:
                raise
            raise LeadsToSecondary(error.message, gave_up=error.errno in GIVEN_UP) from None


class Cluster:
    """Several servers, of which one is the primary.

    Args:
        config: The options.
        driver: Opens connections.
    """

    def __init__(self, config: ConnectionOptions, driver: Driver) -> None:
        self._config, self._driver = config, driver
        self.topology = Topology(config.endpoints)
        self._watches: WeakKeyDictionary[Pool, Watch] = WeakKeyDictionary()

    @property
    def current(self) -> Endpoint:
        """The last known primary, or the first server to try."""
        return self.topology.order()[0]

    def connect(self, pool: Pool) -> CommandGenerator[ServerConnection]:
        """Open a connection to the primary.

        Raises:
            NoPrimary: None of the servers is a working primary. The error has the reason of each.
        """
        reasons = []
        for endpoint in self.topology.order():
            try:
                connection = yield from self._connect_to(self.topology.limits(self._config, endpoint), endpoint)
            except DriverError as error:
                reasons.append(error)
            else:
                return PrimaryConnection(connection, endpoint, self.watch(pool))
        raise NoPrimary(reasons)

    def left(self, endpoint: Endpoint, error: DriverError) -> bool:
        """Note that the server failed: all connections to it are dropped."""
        self.topology.failed(endpoint, error)
        return True

    def watch(self, pool: Pool) -> Watch:
        """Return the watch of a pool's calls."""
        watch = self._watches.get(pool)
        if watch is None:
            watch = self._watches.setdefault(pool, Watch(pool.side, partial(self.look_for_another, ref(pool))))
        return watch

    def look_for_another(self, reference: ref[Pool], silent: ServerConnection) -> CommandGenerator[None]:
        """Abandon a server that does not answer if it has lost its role: end all calls of a pool to it."""
        pool = reference()
        if pool is None or not (yield from self.is_replaced(silent.endpoint)):
            return
        abort_all(pool.outdate())
        for one in self.watch(pool).waiting():
            if one.endpoint == silent.endpoint:
                pool.side.end_call(one.connection)

    def is_replaced(self, silent: Endpoint) -> CommandGenerator[bool]:
        """Check whether another server is the primary by now, while this one does not answer.

        The silent server may just be slow, and if several servers accept writes, another one that does proves nothing.
        So the silent server is queried as well.
        """
        limits = _with_brief_limits(self._config)
        for endpoint in self.topology.others(silent):
            with suppress(DriverError, LocusMySQLError):
                yield Close((yield from self._connect_to(limits, endpoint)))
                try:
                    again = yield from self._connect_to(limits, silent)
                except DriverError:
                    return True
                yield Close(again)
                return False
        return False

    def _connect_to(self, config: ConnectionOptions, endpoint: Endpoint) -> CommandGenerator[Connection]:
        """Open a connection, and check that the server is the primary. Otherwise, close or drop it."""
        topology = self.topology
        try:
            connection = yield from open_connection(self._driver, config, endpoint)
            try:
                try:
                    answers = yield Execute(connection, topology.questions())
                except ServerError as error:
                    if not topology.asks_less_after(error):
                        raise
                    answers = yield Execute(connection, topology.questions())
                topology.check_primary(answers, endpoint)
            except (NotAMember, ServerError):
                yield Close(connection)
                raise
            except BaseException:
                connection.abort()
                raise
        except DriverError as error:
            topology.failed(endpoint, error)
            raise
        topology.is_primary(endpoint)
        return connection


def check_only_server(
    config: ConnectionOptions, connection: Connection, endpoint: Endpoint, *, through_router: bool
) -> CommandGenerator[ServerConnection]:
    """Return a connection to the only address if it leads to a primary; without MySQL Router, or to no group at all.

    Raises:
        LeadsToSecondary: It leads to a secondary of a group, or to a reader of Aurora.
        ServerError: The port splits reads from writes.
    """
    if through_router and not config.pipeline:
        yield from _check_unsplit(connection)
    writes, group = yield Execute(connection, (WRITES, GROUP))
    try:
        check_answers((writes,), endpoint)
    except ServerError as error:
        in_group = any(row.name for row in read_rows(GROUP.row, group.rows))
        if is_read_only(error) and (through_router or in_group):
            raise LeadsToSecondary(error.message) from None
    return (RouterConnection if through_router else ServerConnection)(connection, endpoint)


def _check_unsplit(connection: Connection) -> CommandGenerator[None]:
    """Raise the error with which a splitting port answers a packet of several statements, also without ``pipeline``."""
    try:
        yield Execute(connection, (SPLITS,))
    except ServerError:
        return
    raise ServerError(NO_SEVERAL_STATEMENTS, "this port splits reads from writes")


def execute_where_written(
    execute: Callable[[Sequence[Statement]], CommandGenerator[list[Result]]],
    endpoint: Endpoint,
    statements: Sequence[Statement],
) -> CommandGenerator[list[Result]]:
    """Send statements in a packet that fails on a server that takes no writes."""
    try:
        results = yield from execute((ONLY_WHERE_WRITTEN, *statements))
    except ServerError as error:
        explained = as_read_only(error, endpoint)
        if error.statement_index is not None:
            explained.statement_index = error.statement_index - 1
        if explained is error:
            raise
        raise explained from None
    return results[1:]


def _with_brief_limits(config: ConnectionOptions) -> ConnectionOptions:
    """Return the options of a connection that only reads a server's state."""
    limits = ("connect_timeout_s", "read_timeout_s", "write_timeout_s")
    return config.model_copy(update={name: min(getattr(config, name), BRIEFLY_S) for name in limits})


#: A server is suspected if a call to it has waited for longer than this, in seconds.
SUSPICION_S = 2.0

#: Time between two inspections of the calls, in seconds.
INSPECT_EVERY_S = 1.0

#: Handles a connection that waits long for an answer.
OnSuspect: TypeAlias = Callable[[ServerConnection], CommandGenerator[None]]


class Watch:
    """The calls of a pool that are in progress. They are inspected regularly while there are any.

    Args:
        side: The pool's, which runs the inspections.
        on_suspect: Run again and again, once at a time, while a connection waits too long.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, side: Side, on_suspect: OnSuspect, clock: Callable[[], float] = time.monotonic) -> None:
        self._side = side
        self._on_suspect = on_suspect
        self._clock = clock
        self._began: dict[int, tuple[ServerConnection, float]] = {}
        self._lock = threading.Lock()
        self._is_scheduled = self._is_handling = False

    def begin(self, connection: ServerConnection) -> None:
        """Record that a call on the connection begins."""
        self._began[id(connection)] = (connection, self._clock())
        if not self._is_scheduled:
            self._schedule()

    def end(self, connection: ServerConnection) -> None:
        """Record that the call has its answer, or has failed."""
        self._began.pop(id(connection), None)

    def waiting(self) -> list[ServerConnection]:
        """Return the connections with a call in progress."""
        return [connection for connection, _ in list(self._began.values())]

    def inspect(self) -> CommandGenerator[None]:
        """Handle a connection that has waited too long, beside other work; inspect again later if there are calls."""
        yield from ()  # nothing here waits
        with self._lock:
            self._is_scheduled = False
        since = self._clock() - SUSPICION_S
        suspects = (connection for connection, began in list(self._began.values()) if began < since)
        suspect = next(suspects, None)
        if suspect is not None and not self._is_handling:
            self._is_handling = True
            self._side.start(partial(self._handle, suspect))
        if self._began:
            self._schedule()

    def _handle(self, suspect: ServerConnection) -> CommandGenerator[None]:
        try:
            yield from self._on_suspect(suspect)
        finally:
            self._is_handling = False

    def _schedule(self) -> None:
        with self._lock:
            if not self._is_scheduled:
                self._side.call_later(self.inspect, INSPECT_EVERY_S)
                self._is_scheduled = True
