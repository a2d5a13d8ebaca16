"""Reads from secondaries, where the user asks for them: which calls may be read there, and when the primary answers.

A packet for a secondary begins with a statement that waits until the server has carried out what this process has seen,
and fails if that takes long. Whatever fails on a secondary is asked of the primary.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..config import ConnectionOptions
from ..dialect import Statement
from ..dialect.servers import CARRIED_OUT, LAGS, only_after
from ..drivers.interface import AsyncConnection, Result, ServerError, SyncConnection
from ..errors import ReadOnlyServer
from .gtid_tracker import REGISTER, GtidTracker
from .logs import told
from .operation import Batch, Results
from .topology import SERVERS, NotASecondary
from .transaction import to_return, to_send

#: How long a secondary may take to carry out what this process has seen, in seconds. Then the primary answers.
LAG_S = 1.0

#: The primary answers all reads for this long after a secondary could not, in seconds.
REST_S = 5.0

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
        self._wanted: GtidTracker | None = None
        #: Whether there is anything to ask here before a batch is run.
        self.matter = len(self._servers) > 1 or config.reads == "inspect"
        if len(self._servers) > 1 and config.reads != "primary":
            self._wanted = REGISTER.want(self._servers)
        elif len(self._servers) > 1:
            REGISTER.use(self._servers)

    @property
    def seen(self) -> GtidTracker | None:
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

    def __init__(self, batch: Batch, before: tuple[Statement, ...], seen: GtidTracker) -> None:
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
