"""Reads from secondaries: decides which batches a secondary may answer, and when the primary answers instead.

A packet for a secondary begins with a statement that waits until the server has executed all transactions that this
process has seen, and fails if that takes too long. The primary answers every batch that fails on a secondary.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..config import ConnectionOptions
from ..dialect import Statement
from ..dialect.server_roles import CARRIED_OUT, LAGS, only_after
from ..drivers.interface import ServerError
from ..errors import ReadOnlyServer
from .commands import CommandGenerator
from .gtid_tracker import REGISTER, GtidTracker
from .logs import loggable
from .operation import Batch, Results
from .servers import ServerConnection
from .topology import SERVERS, NotASecondary
from .transaction import own_results, to_send

#: Time limit for a secondary to execute the transactions that this process has seen, in seconds. Then the primary
#: answers.
LAG_S = 1.0

#: The primary answers all reads for this long after a secondary could not, in seconds.
PRIMARY_ONLY_S = 5.0

#: The server's error where `dialect.server_roles.only_after` failed.
_LAGS_ERROR = 1411


class Secondaries:
    """Decides which server answers a batch, and records the answers. Threads may share it.

    Args:
        config: The options.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, config: ConnectionOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._reads = config.reads
        self._servers = frozenset(config.endpoints)
        self._clock = clock
        self._primary_only_until = 0.0
        self._logged = ""
        self._own_tracker: GtidTracker | None = None
        #: Whether to call `check` and `secondary_read` before a batch is run.
        self.must_check = len(self._servers) > 1 or config.reads == "inspect"
        if len(self._servers) > 1 and config.reads != "primary":
            self._own_tracker = REGISTER.get_or_create(self._servers)
        elif len(self._servers) > 1:
            REGISTER.use(self._servers)

    @property
    def gtid_tracker(self) -> GtidTracker | None:
        """Records the transactions that the primary's answers showed, if this process reads from secondaries."""
        return self._own_tracker or REGISTER.get(self._servers)

    def check(self, batch: Batch) -> None:
        """Refuse a batch that writes, with ``reads="inspect"``.

        Raises:
            ReadOnlyServer: The batch writes.
        """
        if self._reads == "inspect" and not batch.only_reads:
            raise ReadOnlyServer(
                "Nothing is written here: this Database was opened with reads='inspect'. Write through another one, "
                "with reads='primary' or 'secondary'."
            )

    def secondary_read(self, batch: Batch) -> SecondaryRead | None:
        """Return the batch as a read for a secondary; None if the primary must answer it."""
        tracker = self._own_tracker
        if tracker is None or not (batch.allow_secondary or self._reads == "inspect"):
            return None
        if self._clock() < self._primary_only_until:
            return None
        required = tracker.required_set()
        if required is None:
            if not tracker.primary_has_gtids:
                self.record_failure(NotASecondary("The primary has no GTIDs (gtid_mode)"))
            return None
        return SecondaryRead(batch, (only_after(required, LAG_S),) if required else (), tracker)

    def record_failure(self, error: Exception) -> None:
        """Record that a secondary failed: unless the batch caused that, the primary answers for a while."""
        if isinstance(error, ServerError) and not is_behind(error):
            return
        self._primary_only_until = self._clock() + PRIMARY_ONLY_S
        if is_behind(error) and self._own_tracker is not None:
            self._own_tracker.forget_committing()
        reason = "it lags behind what this process has seen" if is_behind(error) else loggable(error)
        if reason != self._logged:
            SERVERS.warning("The primary answers instead of a secondary: %s.", reason)
            self._logged = reason

    def record_answer(self) -> None:
        """Record that a secondary has answered."""
        if self._logged:
            SERVERS.info("Secondaries answer again.")
            self._logged = ""


def is_behind(error: Exception) -> bool:
    """Check whether a secondary refused because it lacks transactions that this process has seen."""
    return isinstance(error, ServerError) and error.errno == _LAGS_ERROR and LAGS in error.message


class SecondaryRead:
    """A batch that is sent to a secondary.

    Args:
        batch: A batch that only reads.
        before: Statements that wait until the server has executed the required transactions.
        tracker: Records the transactions that the answer shows.
    """

    def __init__(self, batch: Batch, before: tuple[Statement, ...], tracker: GtidTracker) -> None:
        self._batch = batch
        self._before = before
        self._tracker = tracker

    def execute(self, secondary: ServerConnection) -> CommandGenerator[Results]:
        """Send the batch to the secondary, and return its results."""
        begun = self._tracker.begin()
        try:
            results = yield from secondary.execute((*self._before, *to_send(self._batch), CARRIED_OUT))
        except ServerError:
            # A transaction may be open; and the next connection may lead to a server that does not lag.
            secondary.connection.abort()
            raise
        self._tracker.record(results.pop(), begun, primary=False)
        return own_results(self._batch, results[len(self._before) :], fate_unknown=False)
