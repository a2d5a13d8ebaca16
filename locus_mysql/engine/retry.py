"""When to repeat a batch, and when to give up. No I/O."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..config import ConnectionOptions
from ..drivers.interface import ConnectionLost, DriverError, ServerError
from ..errors import CorruptCheckpoint, LocusMySQLError, Unavailable
from .cluster.topology import LeadsToSecondary, NoPrimary, NotAMember
from .failures import DUPLICATE, GUARD_FAILED, explain, leaves_fate_unknown, may_pass
from .logs import CONFLICTS, RETRIES, loggable
from .operation import Duplicate, Outdated, Pause, Undone
from .passwords import NoPassword

#: Waits grow from the first to the longest, each drawn at random up to its bound, so that writers do not collide again.
FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 1.0

#: The same for writers whose batch was undone because another one's was carried out.
FIRST_CONFLICT_WAIT_S = 0.01
LONGEST_CONFLICT_WAIT_S = 0.64

#: An operation that other writers disturb reads again for at most this long, in seconds.
GIVE_UP_AFTER_S = 60.0


class Backoff:
    """The attempts of an operation that reads again because another process had written meanwhile.

    Args:
        disagreed: What disagreed at each attempt, as a clause that begins the message of the error.
    """

    def __init__(self, disagreed: str) -> None:
        self._disagreed, self._attempts = disagreed, 0
        self._found: object = None
        self._began, self._bound_s, self._longest_s = time.monotonic(), FIRST_CONFLICT_WAIT_S, LONGEST_CONFLICT_WAIT_S

    def check(self) -> None:
        """Record that an attempt failed. Each loop that reads again calls this, or `pause`, so that it ends.

        Raises:
            Unavailable: The deadline has passed.
        """
        self._attempts += 1
        if time.monotonic() - self._began > GIVE_UP_AFTER_S:
            raise Unavailable(
                f"{self._disagreed}, at each of {self._attempts} attempts in {GIVE_UP_AFTER_S:g} s. Try again. If "
                "nothing else writes there, this is a defect of locus-mysql: report it."
            )

    def compare(self, found: object) -> None:
        """Like `check` if the same was found again; otherwise the attempts begin anew."""
        if found == self._found:
            self.check()
        else:
            self._found, self._attempts, self._began = found, 0, time.monotonic()

    def pause(self) -> Pause:
        """Like `check`; return the step that waits for the next pause: a random time up to its bound."""
        self.check()
        seconds = random.uniform(0, self._bound_s)  # noqa: S311 - spreads load, guards no secret
        self._bound_s = min(2 * self._bound_s, self._longest_s)
        return Pause(seconds=seconds)


K = TypeVar("K", bound=Any)


def next_page(after: K | None, last: K) -> K:
    """Return the key after which the next page begins: the last of this page.

    Raises:
        CorruptCheckpoint: It is not behind the page before, so that reading would never end.
    """
    if after and not last > after:
        raise CorruptCheckpoint(f"A page that begins after {after!r:.200} ends with {last!r:.200}: it is out of order.")
    return last


class Retry:
    """The repetitions of one operation.

    Args:
        config: The options, with the deadline.
        reached_before: Whether this process has been connected to the server. If not, a failure to connect, or a
            connection to a secondary, is reported at once: the address is more likely wrong than the server briefly
            unavailable.
        creates_tables: Whether this process creates the operation's tables if they are missing.
        began: When the operation began, by the clock; now if None.
        clock: A monotonic clock, in seconds.
    """

    #: Whether an earlier attempt may have been executed, or may still be: its packet may arrive late.
    fate_unknown = False

    # Set on the first failure; each call creates one of these objects.
    _wait_s = FIRST_WAIT_S
    _was_refused = False
    _last: DriverError | None = None

    def __init__(
        self,
        config: ConnectionOptions,
        *,
        reached_before: bool,
        creates_tables: bool = False,
        began: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._creates_tables = creates_tables
        self._reached = reached_before
        self._clock = clock
        self._deadline = (clock() if began is None else began) + config.retry_deadline_s

    def begin_batch(self) -> None:
        """Start the next batch. `fate_unknown` stays set, because this batch may write the same as an earlier one."""
        self._was_refused = False

    def check_deadline(self) -> None:
        """Refuse to repeat a batch that waited too long, such as for a connection.

        The tables remember for a limited time only which batches were carried out.

        Raises:
            LocusMySQLError: The deadline has passed.
        """
        if self._last is not None and self._clock() > self._deadline:
            raise explain(self._last, self._config) from self._last

    def wait_after(self, error: DriverError) -> float:
        """Return the seconds to wait before the batch is repeated.

        Raises:
            Duplicate: A unique key exists, and the batch was undone.
            Outdated: A guard of the batch failed, and it was undone.
            LocusMySQLError: Repeating cannot help, or the deadline has passed.
        """
        self._last = error
        undone = undone_by(error)
        if undone is not None:
            if self.fate_unknown and not self._was_refused:
                self._was_refused = True  # probably by an earlier attempt of this batch, which is searched for next
                return 0.0
            CONFLICTS.debug("A batch was undone, because its assumptions do not hold: %s.", loggable(error))
            raise undone from error
        connecting = isinstance(error, NoPassword) or (isinstance(error, ConnectionLost) and error.connecting)
        if leaves_fate_unknown(error):
            self.fate_unknown = True
        wait_s = random.uniform(self._wait_s / 2, self._wait_s)  # noqa: S311 - spreads load, guards no secret
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        if isinstance(error, NoPrimary):  # a server that answered may serve soon; then the addresses are right
            answers = (one for one in error.reasons if isinstance(one, NotAMember | ServerError))
            connecting = not any(may_pass(answer, self._config) for answer in answers)
        wrong_address = connecting or isinstance(error, LeadsToSecondary)
        passes = may_pass(error, self._config, creates_tables=self._creates_tables)
        hopeless = not passes or (wrong_address and not self._reached)
        if hopeless or self._clock() + wait_s > self._deadline:
            raise explain(error, self._config) from error
        RETRIES.info("A batch is sent again in %.0f ms: %s.", wait_s * 1_000, loggable(error))
        return wait_s


def undone_by(error: DriverError) -> Duplicate | Outdated | None:
    """Return the exception for a batch that this error has undone, if operations may expect it."""
    if isinstance(error, ServerError) and error.errno == DUPLICATE:
        return Duplicate(*_key_of(error.message), error.message)
    return Outdated(error.message) if isinstance(error, ServerError) and error.errno == GUARD_FAILED else None


def _key_of(message: str) -> tuple[str, str]:
    """Return the table and the key in "Duplicate entry '…' for key 'table.key'". The text before them is data."""
    found = re.search(r"'([^'.]*)\.([^'.]+)'\W*$", message)
    return (found[1], found[2]) if found else ("", "")


def unexpected(undone: Undone, config: ConnectionOptions) -> LocusMySQLError:
    """Return the error for the caller of an operation that did not expect its batch to be undone."""
    cause = undone.__cause__
    return explain(cause if isinstance(cause, DriverError) else DriverError(str(undone)), config)
