"""Connections to the primary among several servers: opening them, and leaving a server that is no longer the primary.

A server may cease to be the primary while connections to it are open. It then goes on to answer reads, and soon lacks
what the new primary has. So each packet begins with a statement that fails there, and nothing that follows it in the
packet is carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..dialect.servers import ONLY_WHERE_WRITTEN
from ..drivers.interface import (
    AsyncConnection,
    Driver,
    DriverError,
    Result,
    ServerError,
    SyncConnection,
)
from ..errors import LocusMySQLError
from .members import AsyncMember, Role, SyncMember, brief
from .topology import (
    NoPrimary,
    NotAMember,
    Topology,
    as_read_only,
    check_answers,
)


class SyncPrimary(SyncMember):
    """A connection that runs statements only while its server is the primary."""

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `SyncConnection.execute`."""
        try:
            return self.connection.execute((ONLY_WHERE_WRITTEN, *statements))[1:]
        except ServerError as error:
            raise as_read_only(error, self.endpoint) from None


class AsyncPrimary(AsyncMember):
    """As `SyncPrimary`."""

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `AsyncConnection.execute`."""
        try:
            return (await self.connection.execute((ONLY_WHERE_WRITTEN, *statements)))[1:]
        except ServerError as error:
            raise as_read_only(error, self.endpoint) from None


def connect(config: ConnectionOptions, driver: Driver, topology: Topology) -> SyncConnection:
    """Open a connection to the only server, or to the primary of several.

    Raises:
        NoPrimary: None of several servers is a working primary. It holds the reason of each.
        DriverError: The only server was not reached, or refused the connection.
    """
    order = topology.order()
    if not topology.several:
        return driver.connect(config, order[0])
    reasons = []
    for endpoint in order:
        try:
            return _connect_to_primary(topology.limits(config, endpoint), driver, topology, endpoint)
        except DriverError as error:
            reasons.append(error)
    raise NoPrimary(reasons)


async def connect_async(config: ConnectionOptions, driver: Driver, topology: Topology) -> AsyncConnection:
    """As `connect`."""
    order = topology.order()
    if not topology.several:
        return await driver.connect_async(config, order[0])
    reasons = []
    for endpoint in order:
        try:
            return await _connect_to_primary_async(topology.limits(config, endpoint), driver, topology, endpoint)
        except DriverError as error:
            reasons.append(error)
    raise NoPrimary(reasons)


def replaced(config: ConnectionOptions, driver: Driver, topology: Topology, silent: Endpoint) -> bool:
    """Whether another server is the primary by now, while this one gives no answer.

    The silent server may just be slow, and where several servers take writes, it proves nothing that another one does.
    So the silent one is asked as well.
    """
    limits = brief(config)
    for endpoint in topology.others(silent):
        with suppress(DriverError, LocusMySQLError):
            _connect_to_primary(limits, driver, topology, endpoint).close()
            try:
                _connect_to_primary(limits, driver, topology, silent).close()
            except DriverError:
                return True
            return False
    return False


async def replaced_async(config: ConnectionOptions, driver: Driver, topology: Topology, silent: Endpoint) -> bool:
    """As `replaced`."""
    limits = brief(config)
    for endpoint in topology.others(silent):
        with suppress(DriverError, LocusMySQLError):
            await (await _connect_to_primary_async(limits, driver, topology, endpoint)).close()
            try:
                await (await _connect_to_primary_async(limits, driver, topology, silent)).close()
            except DriverError:
                return True
            return False
    return False


def _connect_to_primary(
    config: ConnectionOptions, driver: Driver, topology: Topology, endpoint: Endpoint
) -> SyncPrimary:
    try:
        connection = driver.connect(config, endpoint)
        try:
            try:
                answers = connection.execute(topology.questions())
            except ServerError as error:
                if not topology.asks_less_after(error):
                    raise
                answers = connection.execute(topology.questions())
            check_answers(answers, endpoint)
        except (NotAMember, ServerError):
            connection.close()
            raise
        except BaseException:
            connection.abort()
            raise
    except DriverError as error:
        topology.failed(endpoint, error)
        raise
    topology.is_primary(endpoint)
    return SyncPrimary(connection, endpoint)


async def _connect_to_primary_async(
    config: ConnectionOptions, driver: Driver, topology: Topology, endpoint: Endpoint
) -> AsyncPrimary:
    try:
        connection = await driver.connect_async(config, endpoint)
        try:
            try:
                answers = await connection.execute(topology.questions())
            except ServerError as error:
                if not topology.asks_less_after(error):
                    raise
                answers = await connection.execute(topology.questions())
            check_answers(answers, endpoint)
        except (NotAMember, ServerError):
            await connection.close()
            raise
        except BaseException:
            connection.abort()
            raise
    except DriverError as error:
        topology.failed(endpoint, error)
        raise
    topology.is_primary(endpoint)
    return AsyncPrimary(connection, endpoint)


#: A pool of connections to the primary.
PRIMARY = Role(connect, connect_async, replaced, replaced_async)
