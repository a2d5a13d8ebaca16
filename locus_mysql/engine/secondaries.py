"""Reads from secondaries, where the user asks for them: which calls may be read there, and when the primary answers.

A packet for a secondary begins with a statement that waits until the server has carried out what this process has seen,
and fails if that takes long. Whatever fails on a secondary is asked of the primary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..dialect.servers import CARRIED_OUT, LAGS, MEMBERS, READS, only_after
from ..drivers.interface import (
    AsyncConnection,
    ConnectionLost,
    Driver,
    DriverError,
    Result,
    ServerError,
    SyncConnection,
)
from ..errors import LocusMySQLError, ReadOnlyServer
from .logs import told
from .members import AsyncMember, Role, SyncMember, brief
from .operation import Batch, Results
from .seen import REGISTER, Seen
from .topology import BRIEFLY_S, SERVERS, NoSecondary, NotAMember, NotASecondary, Topology, check_membership
from .transaction import to_return, to_send

#: How long a secondary may take to carry out what this process has seen, in seconds. Then the primary answers.
LAG_S = 1.0

#: The primary answers all reads for this long after a secondary could not, in seconds.
REST_S = 5.0

#: A secondary is asked again whether it is a working one with the first call after so long, in seconds.
CHECK_EVERY_S = 5.0

#: The server's error where `dialect.servers.only_after` failed.
_LAGS_ERROR = 1411


class Secondaries:
    """Decides where a batch is read, and learns from the answers. Threads may share it.

    Args:
        config: The options.
        clock: Seconds that only go forward.
    """

    def __init__(self, config: ConnectionOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._reads = config.reads
        self._servers = frozenset(config.endpoints)
        self._clock = clock
        self._rests_until = 0.0
        self._told = ""
        self._wanted: Seen | None = None
        if len(self._servers) > 1 and config.reads != "primary":
            self._wanted = REGISTER.want(self._servers)
        elif len(self._servers) > 1:
            REGISTER.use(self._servers)

    @property
    def seen(self) -> Seen | None:
        """Where answers of the primary are to tell what they showed, if anybody in this process reads secondaries."""
        return self._wanted or REGISTER.get(self._servers)

    def check(self, batch: Batch) -> None:
        """Refuse what writes where only reads are wanted.

        Raises:
            ReadOnlyServer: It does.
        """
        if self._reads == "inspect" and not batch.only_reads:
            raise ReadOnlyServer(
                "Nothing is written here: this Database was opened with reads='inspect'. Write through another one, "
                "with reads='primary' or 'secondary'."
            )

    def question(self, batch: Batch) -> Question | None:
        """What a secondary is to be asked; None if the primary is to answer."""
        seen = self._wanted
        if seen is None or not (batch.feeds_no_save or self._reads == "inspect"):
            return None
        if self._clock() < self._rests_until:
            return None
        needed = seen.needed()
        if needed is None:
            if not seen.counted:
                self.rest(NotASecondary("The primary has no GTIDs (gtid_mode)"))
            return None
        return Question(batch, (only_after(needed, LAG_S),) if needed else (), seen)

    def rest(self, error: Exception) -> None:
        """A secondary could not answer. Unless the batch is to blame, have the primary answer for a while."""
        if isinstance(error, ServerError) and not is_behind(error):
            return
        self._rests_until = self._clock() + REST_S
        if is_behind(error) and self._wanted is not None:
            self._wanted.forget_committing()
        reason = "it lags behind what this process has seen" if is_behind(error) else told(error)
        if reason != self._told:
            SERVERS.warning("The primary answers what a secondary was to be asked: %s.", reason)
            self._told = reason

    def answered(self) -> None:
        """A secondary has answered."""
        if self._told:
            SERVERS.info("Secondaries answer again.")
            self._told = ""


def is_behind(error: Exception) -> bool:
    """Whether a secondary said that it lacks what this process has seen."""
    return isinstance(error, ServerError) and error.errno == _LAGS_ERROR and LAGS in error.message


class Question:
    """A batch as a secondary is asked it.

    Args:
        batch: What only reads.
        before: What waits until the server has carried out enough.
        seen: Where it is taken note of what the answer shows.
    """

    def __init__(self, batch: Batch, before: tuple[Statement, ...], seen: Seen) -> None:
        self._batch = batch
        self._before = before
        self._seen = seen

    def ask(self, connection: SyncConnection) -> Results:
        """Have a secondary answer."""
        begun = self._seen.begin()
        try:
            results = connection.execute(self._statements)
        except ServerError:
            connection.abort()  # a transaction may be open; and the next connection may be to one that does not lag
            raise
        return self._answer(results, begun)

    async def ask_async(self, connection: AsyncConnection) -> Results:
        """As `ask`."""
        begun = self._seen.begin()
        try:
            results = await connection.execute(self._statements)
        except ServerError:
            connection.abort()
            raise
        return self._answer(results, begun)

    @property
    def _statements(self) -> tuple[Statement, ...]:
        return (*self._before, *to_send(self._batch), CARRIED_OUT)

    def _answer(self, results: list[Result], begun: int) -> Results:
        self._seen.learn(results.pop(), begun, primary=False)
        return to_return(self._batch, results[len(self._before) :], fate_unknown=False)


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
