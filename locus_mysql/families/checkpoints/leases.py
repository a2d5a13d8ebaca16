"""Turns as leases, without I/O: `Lease`, `Turns`, and the operations that take, keep and give back a lease.

A lease is a random token in the thread's row, and a time by the server's clock. It is never believed because of what a
process remembers: every write under it asks the server, in its own transaction, whether the token still has the turn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Generic, TypeVar, cast
from weakref import WeakValueDictionary

from ...dialect.checkpoints.dialect import CheckpointDialect
from ...engine.at_fork import tell_at_fork
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput, TurnLost
from .thread_cache import ThreadKey

#: What a turn may be asked for, in seconds.
LONGEST_LEASE_S = 3600.0
SHORTEST_LEASE_S = 0.5
LONGEST_WAIT_S = 86_400.0

#: A lease is renewed this many times before it would end.
RENEWALS = 4

L = TypeVar("L")


class Lease:
    """A turn on a thread, as long as it is held.

    Args:
        key: The tenant and the thread.
        lease_s: How long it lasts from its last renewal.
    """

    def __init__(self, key: ThreadKey, lease_s: float) -> None:
        self.key = key
        self.lease_s = lease_s
        self.token = os.urandom(16)
        self.ended = False
        #: Whether the server said that the lease ran out, or was taken away.
        self.lost = False
        self._process = os.getpid()

    @property
    def thread_id(self) -> str:
        """The thread."""
        return self.key[1]

    @property
    def here(self) -> bool:
        """Whether this process took it: after a fork, it is the parent's."""
        return self._process == os.getpid()

    def check(self) -> None:
        """Refuse to write under a lease that cannot be held any more.

        Raises:
            TurnLost: It ended, is the parent's, or was lost.
        """
        if not self.here:
            raise TurnLost(self.thread_id, "it is the parent process's")
        if self.ended:
            raise TurnLost(self.thread_id, "it has ended")
        if self.lost:
            raise TurnLost(self.thread_id, "it was not renewed in time, or the thread was deleted")


#: The turns that the running task or thread is in, and tasks begun in it; by the stores' own `Turns` and the thread.
_entered: ContextVar[Mapping[tuple[object, ThreadKey], Lease]] = ContextVar("locus_mysql_turns")


class Turns(Generic[L]):
    """The turns of one store's operations: which one a call is in, and the locks by which a process waits in order.

    Those who wait for the same thread in one process wait for a lock of this process; only the first asks the server.
    """

    def __init__(self) -> None:
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: locks that threads of the parent hold are not this process's."""
        self._locks: WeakValueDictionary[object, L] = WeakValueDictionary()
        self._guard = threading.Lock()

    def of(self, key: ThreadKey) -> Lease | None:
        """The turn on a thread that the call belongs to."""
        return _entered.get({}).get((self, key))

    def enter(self, lease: Lease) -> None:
        """From now on, calls of this task or thread are in this turn."""
        _entered.set({**_entered.get({}), (self, lease.key): lease})

    def leave(self, lease: Lease) -> None:
        """Calls are in the turn no more."""
        _entered.set({place: one for place, one in _entered.get({}).items() if one is not lease})

    def lock(self, place: object, make: type[L]) -> L:
        """The lock that those who wait for the same thread in this process share."""
        with self._guard:
            lock = self._locks.get(place)
            if lock is None:
                lock = self._locks[place] = make()
            return lock


class LeaseOperations:
    """Taking, renewing and giving back.

    Args:
        dialect: The statements.
    """

    def __init__(self, dialect: CheckpointDialect) -> None:
        self._sql = dialect

    def acquire(self, lease: Lease) -> Operation[float | None]:
        """Take the turn; None if it was had, else for how many seconds it is somebody else's. One round trip."""
        token = lease.token
        take, whose = self._sql.turns.acquire(*lease.key, token, _us(lease.lease_s), os.urandom(16))
        results = yield Batch.named(take, whose, whose=whose)
        (mine, rest_us), *_ = results.named("whose").rows or ((0, 0),)
        if results.fate_unknown:  # what was sent first may arrive late, and must then find nothing to do
            yield from self._settle(lease.key[0], token)
        if mine and rest_us is not None and cast(int, rest_us) > 0:
            return None
        if results.fate_unknown:
            lease.token = os.urandom(16)
        return max(0.0, cast(int, rest_us or 0) / 1e6)

    def renew(self, lease: Lease) -> Operation[bool]:
        """Have the turn for longer; False if it was lost."""
        (renewed,) = yield Batch.of(self._sql.turns.renew(*lease.key, lease.token, _us(lease.lease_s)))
        return renewed.affected > 0

    def release(self, lease: Lease, *, settle: bool = False) -> Operation[None]:
        """Give the turn back, if it was not lost.

        Args:
            lease: The turn.
            settle: Whether taking it may still be on its way to the server, and must not take it any more.
        """
        if settle:
            yield from self._settle(lease.key[0], lease.token)
        yield Batch.of(*self._sql.turns.release(*lease.key, lease.token))

    def _settle(self, tenant: str, token: bytes) -> Operation[None]:
        yield Batch((self._sql.ledger.settle(tenant, token),), self._sql.ledger.find(tenant, token))


def check_turn(wait_s: object, lease_s: object) -> tuple[float, float]:
    """How long to wait for a turn, and to hold it without a renewal.

    Raises:
        InvalidInput: They are not numbers within the limits.
    """
    return (
        _check_seconds(wait_s, "wait_s", 0.0, LONGEST_WAIT_S),
        _check_seconds(lease_s, "lease_s", SHORTEST_LEASE_S, LONGEST_LEASE_S),
    )


def _check_seconds(value: object, what: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidInput(f"{what} must be a number of seconds from {least:g} to {most:g}, not {value!r:.50}.")
    return float(value)


def _us(seconds: float) -> int:
    return int(seconds * 1_000_000)
