"""When to repeat a batch, and when to give up. No I/O."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from ..config import MySQLConfig
from ..drivers.base import ConnectionLost, DriverError, ServerError
from ..errors import LocusMySQLError
from .failures import DUPLICATE, INTERRUPTED, NULL_REFUSED, explain, may_pass
from .operation import Duplicate, Outdated, Undone

#: Waits grow from the first to the longest, each drawn at random up to its bound, so that writers part ways.
FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 1.0


class Retry:
    """The repetitions of one operation.

    Args:
        config: Has the deadline.
        reached_before: Whether this process has had a connection to the server. If not, failing to connect is reported
            at once: the address is more likely wrong than the server briefly away.
        clock: Seconds that only go forward.
    """

    def __init__(
        self, config: MySQLConfig, *, reached_before: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._reached = reached_before
        self._clock = clock
        self._deadline = clock() + config.retry_deadline_s
        self._wait_s = FIRST_WAIT_S
        #: Whether an earlier try of the batch may have been carried out.
        self.fate_unknown = False
        self._was_duplicate = False

    def begin_batch(self) -> None:
        """Forget what happened to the batch before."""
        self.fate_unknown = False
        self._was_duplicate = False

    def wait_after(self, error: DriverError) -> float:
        """Seconds to wait before the batch is repeated.

        Raises:
            Duplicate: A unique key exists, and the batch was undone.
            Outdated: What the batch relied on is no longer so, and it was undone.
            LocusMySQLError: Repeating cannot help, or the deadline has passed.
        """
        if isinstance(error, ServerError) and error.errno == DUPLICATE:
            if not self.fate_unknown or self._was_duplicate:
                raise Duplicate(error.message) from error
            self._was_duplicate = True  # most likely by our own earlier try, which is looked for next
            return 0.0
        if isinstance(error, ServerError) and error.errno == NULL_REFUSED:
            raise Outdated(error.message) from error
        connecting = isinstance(error, ConnectionLost) and error.connecting
        if (isinstance(error, ConnectionLost) and not connecting) or _was_interrupted(error):
            self.fate_unknown = True
        wait_s = random.uniform(self._wait_s / 2, self._wait_s)  # noqa: S311 - spreads load, guards no secret
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        hopeless = not may_pass(error, self._config) or (connecting and not self._reached)
        if hopeless or self._clock() + wait_s > self._deadline:
            raise explain(error, self._config) from error
        return wait_s


def unexpected(undone: Undone, config: MySQLConfig) -> LocusMySQLError:
    """The error to show the caller of an operation that did not expect its batch to be undone."""
    cause = undone.__cause__
    return explain(cause if isinstance(cause, DriverError) else DriverError(str(undone)), config)


def _was_interrupted(error: DriverError) -> bool:
    """Whether somebody else ended the statement (``KILL QUERY``): if it was a COMMIT, it may have been carried out."""
    return isinstance(error, ServerError) and error.errno == INTERRUPTED
