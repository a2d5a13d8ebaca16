"""Connections to secondaries: opening them, and leaving a server that is no longer a working one.

The counterpart of `primary`. What such a connection is asked, `secondaries` decides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..dialect.servers import MEMBERS, READS
from ..drivers.interface import (
    AsyncConnection,
    ConnectionLost,
    Driver,
    DriverError,
    Result,
    ServerError,
    SyncConnection,
)
from ..errors import LocusMySQLError
from .members import AsyncMember, Role, SyncMember, brief
from .topology import (
    BRIEFLY_S,
    NoSecondary,
    NotAMember,
    NotASecondary,
    Topology,
    check_membership,
)

#: A secondary is asked again whether it is a working one with the first call after so long, in seconds.
CHECK_EVERY_S = 5.0


class SyncSecondary(SyncMember):
    """A connection that runs statements only while its server is a working secondary."""

    def __init__(self, connection: SyncConnection, endpoint: Endpoint, topology: Topology) -> None:
        super().__init__(connection, endpoint)
        self._check = _Check(endpoint, topology)

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `SyncConnection.execute`."""
        questions = self._check.due()
        return self._check.answered(self.connection.execute((*questions, *statements)), len(questions))


class AsyncSecondary(AsyncMember):
    """As `SyncSecondary`."""

    def __init__(self, connection: AsyncConnection, endpoint: Endpoint, topology: Topology) -> None:
        super().__init__(connection, endpoint)
        self._check = _Check(endpoint, topology)

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `AsyncConnection.execute`."""
        questions = self._check.due()
        return self._check.answered(await self.connection.execute((*questions, *statements)), len(questions))


class _Check:
    """Asks a server now and then, in the same packet as other things, whether it is a working secondary."""

    def __init__(self, endpoint: Endpoint, topology: Topology) -> None:
        self._endpoint = endpoint
        self._topology = topology
        self._last: float | None = None

    def due(self) -> tuple[Statement, ...]:
        if self._last is not None and time.monotonic() < self._last + CHECK_EVERY_S:
            return ()
        return (READS, MEMBERS) if self._topology.members_are_told else (READS,)

    def answered(self, results: list[Result], questions: int) -> list[Result]:
        if questions:
            self._judge(results[:questions])
            self._last = time.monotonic()
        return results[questions:]

    def _judge(self, answers: Sequence[Result]) -> None:
        """Raise `NotASecondary`, or `NotAMember`, if it is no working secondary."""
        check_membership(answers[1:], self._endpoint)
        read_only, mode = answers[0].rows[0]
        if not int(str(read_only)):
            self._topology.is_primary(self._endpoint)
            raise NotASecondary(f"MySQL at {self._endpoint} is the primary")
        if mode != "ON":
            raise NotASecondary(f"MySQL at {self._endpoint} has no GTIDs (gtid_mode)")


def _connect(config: ConnectionOptions, driver: Driver, topology: Topology) -> SyncConnection:
    reasons: list[Exception] = []
    for endpoint in topology.secondaries():
        try:
            return _connect_to(config, driver, topology, endpoint)
        except (DriverError, LocusMySQLError) as error:
            reasons.append(error)
    raise NoSecondary(reasons)


async def _connect_async(config: ConnectionOptions, driver: Driver, topology: Topology) -> AsyncConnection:
    reasons: list[Exception] = []
    for endpoint in topology.secondaries():
        try:
            return await _connect_to_async(config, driver, topology, endpoint)
        except (DriverError, LocusMySQLError) as error:
            reasons.append(error)
    raise NoSecondary(reasons)


def _connect_to(config: ConnectionOptions, driver: Driver, topology: Topology, endpoint: Endpoint) -> SyncSecondary:
    try:
        connection = SyncSecondary(driver.connect(_limits(config), endpoint), endpoint, topology)
        try:
            try:
                connection.execute(())
            except ServerError as error:
                if not topology.asks_less_after(error):
                    raise
                connection.execute(())
        except (NotAMember, NotASecondary, ServerError):
            connection.close()
            raise
        except BaseException:
            connection.abort()
            raise
    except ConnectionLost as error:
        topology.failed(endpoint, error)
        raise
    return connection


async def _connect_to_async(
    config: ConnectionOptions, driver: Driver, topology: Topology, endpoint: Endpoint
) -> AsyncSecondary:
    try:
        connection = AsyncSecondary(await driver.connect_async(_limits(config), endpoint), endpoint, topology)
        try:
            try:
                await connection.execute(())
            except ServerError as error:
                if not topology.asks_less_after(error):
                    raise
                await connection.execute(())
        except (NotAMember, NotASecondary, ServerError):
            await connection.close()
            raise
        except BaseException:
            connection.abort()
            raise
    except ConnectionLost as error:
        topology.failed(endpoint, error)
        raise
    return connection


def _limits(config: ConnectionOptions) -> ConnectionOptions:
    """The options to connect by: the primary could answer meanwhile."""
    return config.model_copy(update={"connect_timeout_s": min(config.connect_timeout_s, BRIEFLY_S)})


def _gone(config: ConnectionOptions, driver: Driver, topology: Topology, silent: Endpoint) -> bool:
    try:
        _connect_to(brief(config), driver, topology, silent).close()
    except (DriverError, LocusMySQLError):
        return True
    return False


async def _gone_async(config: ConnectionOptions, driver: Driver, topology: Topology, silent: Endpoint) -> bool:
    try:
        await (await _connect_to_async(brief(config), driver, topology, silent)).close()
    except (DriverError, LocusMySQLError):
        return True
    return False


#: A pool of connections to secondaries.
SECONDARY = Role(_connect, _connect_async, _gone, _gone_async)
