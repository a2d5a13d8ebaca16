"""When to repeat a batch, and when to give up. No I/O."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

from ..config import ConnectionOptions
from ..drivers.interface import ConnectionLost, DriverError, ServerError
from ..errors import LocusMySQLError
from .failures import DUPLICATE, GUARD_FAILED, INTERRUPTED, explain, may_pass
from .logs import CONFLICTS, RETRIES, told
from .operation import Duplicate, Outdated, Undone
from .topology import NoPrimary

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

    #: Whether an earlier try may have been carried out, or still may be: what was sent may arrive late.
    fate_unknown = False

    # Set when something fails; each call makes one of these.
    _wait_s = FIRST_WAIT_S
    _was_refused = False
    _last: DriverError | None = None

    def __init__(
        self, config: ConnectionOptions, *, reached_before: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._reached = reached_before
        self._clock = clock
        self._deadline = clock() + config.retry_deadline_s

    def begin_batch(self) -> None:
        """Go on to the next batch. That the fate of an earlier one is unknown is not forgotten: it may do the same."""
        self._was_refused = False

    def check_deadline(self) -> None:
        """Refuse to send a batch again that waited too long for its turn, such as for a connection.

        What was carried out is recognised for a limited time only.

        Raises:
            LocusMySQLError: The deadline has passed.
        """
        if self._last is not None and self._clock() > self._deadline:
            raise explain(self._last, self._config) from self._last

    def wait_after(self, error: DriverError) -> float:
        """Seconds to wait before the batch is repeated.

        Raises:
            Duplicate: A unique key exists, and the batch was undone.
            Outdated: A guard of the batch failed, and it was undone.
            LocusMySQLError: Repeating cannot help, or the deadline has passed.
        """
        self._last = error
        if isinstance(error, ServerError) and error.errno in {DUPLICATE, GUARD_FAILED}:
            if self.fate_unknown and not self._was_refused:
                self._was_refused = True  # most likely by our own earlier try, which is looked for next
                return 0.0
            CONFLICTS.debug("A batch was undone, as something is not as it supposed: %s.", told(error))
            if error.errno == DUPLICATE:
                raise Duplicate(*_key_of(error.message), error.message, fate_unknown=self.fate_unknown) from error
            raise Outdated(error.message, fate_unknown=self.fate_unknown) from error
        connecting = isinstance(error, ConnectionLost) and error.connecting
        if (isinstance(error, ConnectionLost) and not connecting) or _was_interrupted(error):
            self.fate_unknown = True
        wait_s = random.uniform(self._wait_s / 2, self._wait_s)  # noqa: S311 - spreads load, guards no secret
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        nobody_answered = connecting or (isinstance(error, NoPrimary) and not error.answered)
        hopeless = not may_pass(error, self._config) or (nobody_answered and not self._reached)
        if hopeless or self._clock() + wait_s > self._deadline:
            raise explain(error, self._config) from error
        RETRIES.info("A batch is sent again in %.0f ms: %s.", wait_s * 1_000, told(error))
        return wait_s


def _key_of(words: str) -> tuple[str, str]:
    """Table and key in "Duplicate entry '…' for key 'table.key'". What stands before them is data."""
    found = re.search(r"'([^'.]*)\.([^'.]+)'\W*$", words)
    return (found[1], found[2]) if found else ("", "")


def unexpected(undone: Undone, config: ConnectionOptions) -> LocusMySQLError:
    """The error to show the caller of an operation that did not expect its batch to be undone."""
    cause = undone.__cause__
    return explain(cause if isinstance(cause, DriverError) else DriverError(str(undone)), config)


def _was_interrupted(error: DriverError) -> bool:
    """Whether somebody else ended the statement (``KILL QUERY``): if it was a COMMIT, it may have been carried out."""
    return isinstance(error, ServerError) and error.errno == INTERRUPTED
