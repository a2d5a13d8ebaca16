"""Batches that travel together: calls that wait for a connection share the packet, and the commit, of one that has it.

A call that gets a connection while others wait takes the batches of those that have waited the longest, and sends all
as one transaction. If a statement fails, that transaction is rolled back: nothing of any batch was carried out. The
batch with that statement is then sent alone, by its own call, and the others together again. So each call gets the
outcome that it would have had alone, and the transaction of a batch never depends on one that was undone.

If the connection breaks, each call learns that its answer was lost, and finds out by its own token whether its batch
was carried out. The same happens if the call that sends is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias
from weakref import ref

from ..dialect import Statement
from ..drivers.interface import ConnectionLost, DriverError, Result, ServerError
from .commands import Steps
from .failures import READ_ONLY, leaves_fate_unknown
from .operation import Batch
from .servers import ServerConnection
from .transaction import BEGIN, COMMIT, roll_back

#: The most batches in one packet, and the most bytes of them: 8 save most of what can be saved, and a large packet
#: makes the small ones in it wait.
MOST_TOGETHER = 8
MOST_BYTES = 262_144

#: At most this many waiting calls are looked at for one packet.
MOST_LOOKED_AT = 64


class Undecided:
    """The outcome of a batch that was not carried out with others, and must be sent alone."""


ALONE = Undecided()

#: Results, or the error that the call would have got alone, or `ALONE`.
Outcome: TypeAlias = "Sequence[Result] | DriverError | Undecided"


class Member:
    """A batch that may be sent together with others.

    Args:
        batch: The batch, with a `Batch.lock`.
    """

    __slots__ = ("_group", "batch", "outcome", "wake")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        #: Set once another call has sent the batch.
        self.outcome: Outcome | None = None
        #: Wakes the call that waits for the outcome; set when another call takes the batch.
        self.wake: Callable[[], None] | None = None
        self._group: ref[Group] | None = None

    @property
    def taken(self) -> bool:
        """Return whether another call sends the batch, or has sent it."""
        return self._group is not None

    def join(self, group: Group, wake: Callable[[], None]) -> None:
        """Let a group send the batch. Called with the pool's lock held."""
        self.wake = wake
        self._group = ref(group)

    def settle(self, outcome: Outcome) -> None:
        """Set the outcome, and wake the call."""
        if self.outcome is None:
            self.outcome = outcome
            if self.wake is not None:
                self.wake()

    def check_sender(self) -> None:
        """Notice that the call that was to send the batch has vanished, as a signal may end a thread anywhere."""
        if self.outcome is None and self._group is not None and self._group() is None:
            self.outcome = sender_ended()


class Group:
    """The batches that one call sends: its own, and those of waiting calls.

    Args:
        own: The batch of the call that sends.
        most_bytes: The most bytes of all.
    """

    def __init__(self, own: Member, most_bytes: int = MOST_BYTES) -> None:
        self.own = own
        self.others: list[Member] = []
        self._bytes_left = most_bytes - size_bytes(own.batch)

    @property
    def full(self) -> bool:
        """Return whether no more batches fit."""
        return len(self.others) + 1 >= MOST_TOGETHER or self._bytes_left <= 0

    def add(self, member: Member, wake: Callable[[], None]) -> bool:
        """Take the batch of a waiting call if it fits. Called with the pool's lock held."""
        size = size_bytes(member.batch)
        if self.full or size > self._bytes_left:
            return False
        self._bytes_left -= size
        self.others.append(member)
        member.join(self, wake)
        return True

    def send(self, primary: ServerConnection) -> Steps[Sequence[Result] | None]:
        """Send the batches, and give each other call its outcome.

        Returns:
            The results of the own batch; None if it must be sent alone.

        Raises:
            DriverError: All failed in the same way, or the answer was lost.
        """
        together = [self.own, *self.others]
        try:
            while len(together) > 1:
                ordered = sorted(together, key=_lock)
                try:
                    results = yield from primary.execute(_packet(ordered))
                except ServerError as error:
                    if _concerns_all(error, primary, ordered):
                        raise
                    yield from roll_back(primary)
                    failed = _member_at(error.place, ordered)
                    together = [] if failed is None else [one for one in together if one is not failed]
                    self._send_alone(one for one in ordered if one not in together)
                else:
                    _distribute(results, ordered)
                    together = []
            self._send_alone(self.others)
        except BaseException as error:
            for one in self.others:
                one.settle(error if isinstance(error, DriverError) else sender_ended())
            raise
        outcome = self.own.outcome
        return None if outcome is None or isinstance(outcome, Undecided | DriverError) else outcome

    def _send_alone(self, members: Iterable[Member]) -> None:
        for one in members:
            if one is not self.own:
                one.settle(ALONE)


def sender_ended() -> ConnectionLost:
    """Return the error of a call whose batch was in the packet of one that was cancelled."""
    return ConnectionLost("The call that had sent this one's batch with its own was ended before the answer")


def size_bytes(batch: Batch) -> int:
    """Return about how many bytes the statements of a batch have."""
    return sum(
        len(statement.sql) + sum(len(value) for value in statement.params if isinstance(value, str | bytes))
        for statement in batch.statements
    )


def _lock(member: Member) -> tuple[str | bytes, ...]:
    """Sort by what the batches lock, so that groups of different connections lock it in the same order."""
    return member.batch.lock


def _packet(members: Sequence[Member]) -> tuple[Statement, ...]:
    return (BEGIN, *(statement for one in members for statement in one.batch.statements), COMMIT)


def _distribute(results: Sequence[Result], members: Sequence[Member]) -> None:
    start = 1  # after BEGIN
    for one in members:
        stop = start + len(one.batch.statements)
        one.settle(results[start:stop])
        start = stop


def _member_at(place: int | None, members: Sequence[Member]) -> Member | None:
    """Return the member with the statement at a place in the packet; None if it is unknown, or no member's."""
    if place is None or place < 1:
        return None
    for one in members:
        place -= len(one.batch.statements)
        if place < 1:
            return one
    return None


def _concerns_all(error: ServerError, primary: ServerConnection, members: Sequence[Member]) -> bool:
    """Check whether each batch would have got this error alone, or may have been carried out nevertheless."""
    at_commit = error.place is not None and error.place > 0 and _member_at(error.place, members) is None
    return at_commit or leaves_fate_unknown(error) or error.errno in READ_ONLY or primary.connection.closed
