"""Connections to secondaries: opens them, and abandons a server that is no longer a working secondary.

The counterpart of `primary`. `secondaries` decides which batches use such a connection.
"""

from __future__ import annotations

import time

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..dialect.server_roles import MEMBERS, READS
from ..drivers.interface import ConnectionLost, Driver, DriverError, Result, ServerError
from ..errors import LocusMySQLError
from .commands import Close, CommandGenerator
from .rows import read_rows
from .servers import Role, ServerConnection, connect_and_ask, with_brief_limits
from .topology import BRIEFLY_S, NoSecondary, NotASecondary, Topology, check_membership

#: The first packet after this time, in seconds, checks again that the server is a working secondary.
CHECK_EVERY_S = 5.0


class _IsSecondary:
    """The guard of a connection to a secondary. It checks from time to time, in the same packet as other statements.

    Args:
        endpoint: The server.
        topology: Records it if the server is found to be the primary.
    """

    def __init__(self, endpoint: Endpoint, topology: Topology) -> None:
        self._endpoint = endpoint
        self._topology = topology
        self._last: float | None = None

    def checks(self) -> tuple[Statement, ...]:
        """See `Guard.checks`."""
        if self._last is not None and time.monotonic() < self._last + CHECK_EVERY_S:
            return ()
        return (READS, MEMBERS) if self._topology.may_see_members else (READS,)

    def verify(self, answers: list[Result]) -> None:
        """See `Guard.verify`. Raises `NotASecondary`, or `NotAMember`."""
        if not answers:
            return
        check_membership(answers[1:], self._endpoint)
        (reads,) = read_rows(READS.row, answers[0].rows)
        if not reads.read_only:
            self._topology.is_primary(self._endpoint)
            raise NotASecondary(f"MySQL at {self._endpoint} is the primary")
        if reads.gtid_mode != "ON":
            raise NotASecondary(f"MySQL at {self._endpoint} has no GTIDs (gtid_mode)")
        self._last = time.monotonic()

    def explain(self, error: ServerError) -> ServerError:
        """See `Guard.explain`."""
        return error


def _connect(config: ConnectionOptions, driver: Driver, topology: Topology) -> CommandGenerator[ServerConnection]:
    """Open a connection to any working secondary.

    Raises:
        NoSecondary: There is none. The error has the reason of each server.
    """
    reasons: list[Exception] = []
    for endpoint in topology.secondaries():
        try:
            return (yield from _connect_to(config, driver, topology, endpoint))
        except (DriverError, LocusMySQLError) as error:
            reasons.append(error)
    raise NoSecondary(reasons)


def _is_gone(config: ConnectionOptions, driver: Driver, topology: Topology, silent: Endpoint) -> CommandGenerator[bool]:
    """Check whether a server that does not answer has stopped being a working secondary."""
    try:
        again = yield from _connect_to(with_brief_limits(config), driver, topology, silent)
    except (DriverError, LocusMySQLError):
        return True
    yield Close(again.connection)
    return False


def _connect_to(
    config: ConnectionOptions, driver: Driver, topology: Topology, endpoint: Endpoint
) -> CommandGenerator[ServerConnection]:
    guard = _IsSecondary(endpoint, topology)
    # A short limit for connecting, as the primary could answer meanwhile.
    limits = config.model_copy(update={"connect_timeout_s": min(config.connect_timeout_s, BRIEFLY_S)})
    try:
        connection = yield from connect_and_ask(limits, driver, topology, endpoint, guard.checks, guard.verify)
    except ConnectionLost as error:
        topology.failed(endpoint, error)
        raise
    return ServerConnection(connection, endpoint, guard)


#: A pool of connections to secondaries.
SECONDARY = Role(_connect, _is_gone)
