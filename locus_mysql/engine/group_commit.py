"""Group commit: writes of calls that wait for a connection are sent by one call, as one packet and one transaction.

A call that gets a connection while others wait takes the writes of those that have waited the longest, and sends all
in one transaction. If a statement fails, the transaction is rolled back, so nothing was written. The others are then
sent together again, and after them the write with that statement, in a transaction of its own. So each call has the
outcome that it would have had alone, and no write depends on another one that was undone.

If the connection breaks, each call finds out by its own token whether its write was carried out. If the call that sends
is cancelled, the packet is not (`commands.Shielded`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..dialect import Statement
from ..drivers.interface import ConnectionLost, DriverError, PacketTooLarge, Result, ServerError
from .commands import CommandGenerator
from .failures import LOCK_WAIT_TIMEOUT, READ_ONLY, was_interrupted
from .operation import Batch

if TYPE_CHECKING:
    from .connection_slots import Slot
    from .pool import Pool, ServerConnection

#: Limits of one packet: 8 writes save most of what can be saved, and a long packet delays the short writes in it.
MAX_WRITES = 8
MAX_BYTES = 262_144

#: The maximum number of waiting calls that are examined for one packet.
MAX_EXAMINED = 64

#: After this number of waits for locks of other sessions, each a second long, the other calls send their own writes.
MAX_LOCK_WAITS = 2

#: The server ends a session whose transaction waits for the client's next packet for longer, in seconds. After an
#: error, a transaction is open until the client sends ROLLBACK. Without this limit, the locks of a client that has
#: vanished silently would stay for ``wait_timeout``, 8 hours by default.
IDLE_IN_TRANSACTION_S = 20

# MySQL has no limit for idle transactions, and `wait_timeout` is also the limit of idle pooled connections. So each
# transaction sets it at its beginning and its end. It begins and ends by `autocommit`, which one SET changes as well:
# processor time of the server for one UPDATE in a transaction 51 µs, instead of 43 without a limit, and 59 if SET
# statements stand beside START TRANSACTION and COMMIT.
BEGIN = Statement(f"SET autocommit=0,wait_timeout={IDLE_IN_TRANSACTION_S}")
COMMIT = Statement("SET autocommit=1,wait_timeout=DEFAULT")
ROLLBACK = Statement("ROLLBACK")

# A write whose row is locked by another session must not delay the others for long. A session's own limits are kept in
# variables, as `init_connect` may have set them.
_LIMIT_LOCK_WAITS = Statement(
    "SET @locus_row_wait = @@innodb_lock_wait_timeout, @locus_table_wait = @@lock_wait_timeout,"
    " SESSION innodb_lock_wait_timeout = 1, SESSION lock_wait_timeout = 1"
)
_RESTORE_LOCK_WAITS = Statement(
    "SET SESSION innodb_lock_wait_timeout = @locus_row_wait, SESSION lock_wait_timeout = @locus_table_wait"
)
_PREFIX = (_LIMIT_LOCK_WAITS, BEGIN)
_SUFFIX = (COMMIT, _RESTORE_LOCK_WAITS)


def send_with_others(pool: Pool, slot: Slot, lent: ServerConnection) -> CommandGenerator[None]:
    """Send the writes of a slot's group, and give the connection back. Each call finds its outcome in its write."""
    try:
        if slot.group is not None:
            yield from slot.group.send(lent)
        if not pool.give_back_at_once(slot, lent):
            yield from pool.close_outdated(slot, lent)
    except BaseException as error:
        pool.give_back_after(slot, error)
        if not isinstance(error, DriverError):
            raise


class SendAlone:
    """The outcome of a write that was not carried out, and that its own call must send."""


SEND_ALONE = SendAlone()

#: Results, or the error that the call would have had alone, or `SEND_ALONE`.
Outcome: TypeAlias = "Sequence[Result] | DriverError | SendAlone"


class QueuedWrite:
    """The write of a call that may wait for a connection, and may be sent by another call.

    Args:
        batch: The statements, with a `Batch.lock`.
    """

    __slots__ = ("_wake", "batch", "outcome")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        #: Set once the write was sent in a group.
        self.outcome: Outcome | None = None
        self._wake: Callable[[], None] | None = None

    @property
    def taken(self) -> bool:
        """Return whether another call sends the write, or has sent it."""
        return self._wake is not None

    def take(self, wake: Callable[[], None]) -> None:
        """Let another call send the write; `wake` is called once the outcome is set."""
        self._wake = wake

    def settle(self, outcome: Outcome) -> None:
        """Set the outcome, unless it is set, and wake the call. May be repeated, if a signal interrupted it."""
        if self.outcome is None:
            self.outcome = outcome
        if self._wake is not None:
            self._wake()


class CommitGroup:
    """The writes that one call sends: its own, and those of waiting calls.

    Args:
        own: The write of the call that sends.
        max_bytes: The maximum number of bytes of all.
    """

    def __init__(self, own: QueuedWrite, max_bytes: int = MAX_BYTES) -> None:
        self.writes = [own]
        self._bytes_left = max_bytes - size_bytes(own.batch)

    @property
    def full(self) -> bool:
        """Return whether no more writes fit."""
        return len(self.writes) >= MAX_WRITES or self._bytes_left <= 0

    def add(self, write: QueuedWrite, wake: Callable[[], None]) -> bool:
        """Take the write of a waiting call if it fits. Called with the pool's lock held."""
        size = size_bytes(write.batch)
        if self.full or size > self._bytes_left:
            return False
        self._bytes_left -= size
        self.writes.append(write)
        write.take(wake)
        return True

    def send(self, primary: ServerConnection) -> CommandGenerator[None]:
        """Send the writes, and set the outcome of each.

        Raises:
            DriverError: The outcome of all writes that were not carried out before. The pool reuses or drops the
                connection, depending on the error.
        """
        try:
            yield from self._send(primary)
        except DriverError as error:
            self._settle(error)
            raise
        self._settle(SEND_ALONE)

    def abandon(self) -> None:
        """Let each call whose write has no outcome find out by itself, because the call that sends has ended."""
        self._settle(ConnectionLost("The call that had sent this one's write with its own ended before the answer"))

    def _send(self, primary: ServerConnection) -> CommandGenerator[None]:
        # Sorted by their locks, so that the packets of several connections lock in the same order.
        pending = deque([sorted(self.writes, key=lambda write: write.batch.lock)])
        lock_waits = 0
        while pending and lock_waits < MAX_LOCK_WAITS:
            writes = pending.popleft()
            try:
                results = yield from primary.execute(_packet(writes))
            except PacketTooLarge:  # nothing was sent
                return
            except ServerError as error:
                if primary.connection.closed:
                    raise
                yield from roll_back(primary, _RESTORE_LOCK_WAITS)
                if error.statement_index is None:
                    return
                failed = _write_of(error.statement_index, writes)
                if failed is None or error.errno in READ_ONLY:
                    raise  # each call would have had this error alone, or its write may have been committed
                others = [write for write in writes if write is not failed]
                if error.errno == LOCK_WAIT_TIMEOUT:
                    lock_waits += 1
                    others = [write for write in others if write.batch.lock != failed.batch.lock]
                elif others and not was_interrupted(error):
                    pending.append([failed])
                else:
                    failed.settle(error)
                if others:
                    pending.appendleft(others)
            else:
                _distribute(results, writes)

    def _settle(self, outcome: Outcome) -> None:
        for write in self.writes:
            write.settle(outcome)


def size_bytes(batch: Batch) -> int:
    """Return about how many bytes the statements of a batch have."""
    return sum(
        len(statement.sql) + sum(len(value) for value in statement.params if isinstance(value, str | bytes))
        for statement in batch.statements
    )


def _packet(writes: Sequence[QueuedWrite]) -> tuple[Statement, ...]:
    return (*_PREFIX, *(statement for write in writes for statement in write.batch.statements), *_SUFFIX)


def _distribute(results: Sequence[Result], writes: Sequence[QueuedWrite]) -> None:
    start = len(_PREFIX)
    for write in writes:
        stop = start + len(write.batch.statements)
        write.settle(results[start:stop])
        start = stop


def _write_of(statement_index: int, writes: Sequence[QueuedWrite]) -> QueuedWrite | None:
    """Return the write with a statement of the packet; None for the statements around all writes."""
    index = statement_index - len(_PREFIX)
    for write in writes:
        if 0 <= index < len(write.batch.statements):
            return write
        index -= len(write.batch.statements)
    return None


def roll_back(primary: ServerConnection, *after: Statement) -> CommandGenerator[None]:
    """Undo the open transaction, and execute statements after it; drop the connection if that fails."""
    try:
        yield from primary.execute((ROLLBACK, COMMIT, *after))  # COMMIT resets `autocommit` and the limit
    except DriverError:  # the transaction may still be open, and must not be continued by another call
        primary.connection.abort()
