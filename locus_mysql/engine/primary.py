"""Connections to the primary among several servers: opens them, and abandons a server that is no longer the primary.

A server may cease to be the primary while connections to it are open. It then continues to answer reads, and soon lacks
writes of the new primary. So each packet begins with a statement that fails there, and the server executes nothing that
follows it in the packet.
"""

from __future__ import annotations

from contextlib import suppress

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..dialect.server_roles import GROUP, ONLY_WHERE_WRITTEN, ROUTER, SPLITS, WRITES
from ..drivers.interface import Driver, DriverError, Result, ServerError
from ..errors import LocusMySQLError
from .commands import Close, CommandGenerator, Connection, Execute
from .failures import GIVEN_UP, NO_SEVERAL_STATEMENTS, READ_ONLY
from .passwords import open_connection
from .rows import read_rows
from .servers import Role, ServerConnection
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


class _TakesWrites:
    """The guard of a connection to the primary.

    Args:
        endpoint: The server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def checks(self) -> tuple[Statement, ...]:
        """See `Guard.checks`."""
        return (ONLY_WHERE_WRITTEN,)

    def verify(self, answers: list[Result]) -> None:
        """See `Guard.verify`: the check itself fails."""

    def explain(self, error: ServerError) -> DriverError:
        """See `Guard.explain`."""
        return as_read_only(error, self._endpoint)


class _RouterTakesWrites(_TakesWrites):
    """The guard of a connection through MySQL Router, which leads new connections to the primary."""

    def explain(self, error: ServerError) -> DriverError:
        """See `Guard.explain`."""
        explained = as_read_only(error, self._endpoint)
        if explained.errno not in READ_ONLY:
            return explained
        return LeadsToSecondary(explained.message, gave_up=explained.errno in GIVEN_UP)


def _connect(config: ConnectionOptions, driver: Driver, topology: Topology) -> CommandGenerator[ServerConnection]:
    """Open a connection to the only server, or to the primary of several.

    Raises:
        NoPrimary: None of several servers is a working primary. The error has the reason of each.
        LeadsToSecondary: The only address leads to a secondary of a group, or to a reader of Aurora.
        DriverError: The only server was not reached, or refused the connection.
    """
    order = topology.order()
    if not topology.several:
        return (yield from _connect_to_only(config, driver, order[0]))
    reasons = []
    for endpoint in order:
        try:
            return (yield from _connect_to(topology.limits(config, endpoint), driver, topology, endpoint))
        except DriverError as error:
            reasons.append(error)
    raise NoPrimary(reasons)


def _connect_to_only(
    config: ConnectionOptions, driver: Driver, endpoint: Endpoint
) -> CommandGenerator[ServerConnection]:
    """Open a connection to the only address, which may be MySQL Router's, in front of any server of a group.

    A server without a group is used without checks, even if it is read-only.
    """
    connection = yield from open_connection(driver, config, endpoint)
    through_router = ROUTER in connection.server_version
    if config.read_only or not (through_router or getattr(connection, "read_only", False)):
        return ServerConnection(connection, endpoint, None)
    try:
        if through_router and not config.pipeline:
            yield from _check_unsplit(connection)
        yield from _check_leads_to_primary(connection, endpoint, through_router=through_router)
    except DriverError:
        yield Close(connection)
        raise
    except BaseException:
        connection.abort()
        raise
    return ServerConnection(connection, endpoint, _RouterTakesWrites(endpoint) if through_router else None)


def _check_unsplit(connection: Connection) -> CommandGenerator[None]:
    """Raise the error with which a splitting port answers a packet of several statements, also without ``pipeline``."""
    try:
        yield Execute(connection, (SPLITS,))
    except ServerError:
        return
    raise ServerError(NO_SEVERAL_STATEMENTS, "this port splits reads from writes")


def _check_leads_to_primary(
    connection: Connection, endpoint: Endpoint, *, through_router: bool
) -> CommandGenerator[None]:
    """Raise `LeadsToSecondary` if a server takes no writes; without MySQL Router, only in a group or on Aurora."""
    writes, group = yield Execute(connection, (WRITES, GROUP))
    try:
        check_answers((writes,), endpoint)
    except ServerError as error:
        in_group = any(row.name for row in read_rows(GROUP.row, group.rows))
        if is_read_only(error) and (through_router or in_group):
            raise LeadsToSecondary(error.message) from None


def _is_replaced(
    config: ConnectionOptions, driver: Driver, topology: Topology, silent: Endpoint
) -> CommandGenerator[bool]:
    """Check whether another server is the primary by now, while this one does not answer.

    The silent server may just be slow, and if several servers accept writes, another one that does proves nothing. So
    the silent server is queried as well.
    """
    limits = _with_brief_limits(config)
    for endpoint in topology.others(silent):
        with suppress(DriverError, LocusMySQLError):
            other = yield from _connect_to(limits, driver, topology, endpoint)
            yield Close(other.connection)
            try:
                again = yield from _connect_to(limits, driver, topology, silent)
            except DriverError:
                return True
            yield Close(again.connection)
            return False
    return False


def _with_brief_limits(config: ConnectionOptions) -> ConnectionOptions:
    """Return the options of a connection that only reads a server's state."""
    limits = ("connect_timeout_s", "read_timeout_s", "write_timeout_s")
    return config.model_copy(update={name: min(getattr(config, name), BRIEFLY_S) for name in limits})


def _connect_to(
    config: ConnectionOptions, driver: Driver, topology: Topology, endpoint: Endpoint
) -> CommandGenerator[ServerConnection]:
    """Open a connection, and check that the server is the primary. Otherwise, close or drop it."""
    try:
        connection = yield from open_connection(driver, config, endpoint)
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
    return ServerConnection(connection, endpoint, _TakesWrites(endpoint))


#: A pool of connections to the primary.
PRIMARY = Role(_connect, _is_replaced)
