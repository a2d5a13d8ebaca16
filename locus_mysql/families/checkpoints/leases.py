"""Turns as leases, without I/O: `Lease`, `Turns`, and the operations that acquire, renew and release a lease.

A lease is a random token in the thread's row, and a time by the server's clock. A process never relies on its own
knowledge of it: every write under a lease checks in its transaction that the token still has the turn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from ...engine.operation import Batch, Operation
from ...errors import InvalidInput, TurnLost
from ...records.ledger import FIND, RECORD
from .statements import threads
from .statements.tables import CheckpointDialect, ThreadKey
from .statements.threads import Holder

#: Limits of a turn's arguments, in seconds.
LONGEST_LEASE_S = 3600.0
SHORTEST_LEASE_S = 0.5
LONGEST_WAIT_S = 86_400.0

#: Number of renewals within the duration of a lease.
RENEWALS = 4

L = TypeVar("L")


class Lease:
    """A turn on a thread, as long as it is held.

    Args:
        key: The tenant and the thread.
        lease_s: Its duration from the last renewal.
    """

    def __init__(self, key: ThreadKey, lease_s: float) -> None:
        self.key = key
        self.lease_s = lease_s
        self.token = os.urandom(16)
        self.ended = False
        #: Whether the server reported that the lease expired or was revoked.
        self.lost = False
        #: Whether a packet that acquires it may still reach the server.
        self.may_arrive = False
        self._process = os.getpid()

    @property
    def thread_id(self) -> str:
        """The thread."""
        return self.key.thread_id

    @property
    def here(self) -> bool:
        """Return whether this process acquired it: after a fork, it is the parent's."""
        return self._process == os.getpid()

    def check(self) -> None:
        """Check that a write may use this lease.

        Raises:
            TurnLost: It ended, belongs to the parent process, or was lost.
        """
        if not self.here:
            raise TurnLost(self.thread_id, "the turn belongs to the parent process")
        if self.ended:
            raise TurnLost(self.thread_id, "its block has ended")
        if self.lost:
            raise TurnLost(self.thread_id, "it was not renewed in time, or the thread was deleted")


#: The turns of the running task or thread, inherited by its tasks; by the `Turns` of the tables and the thread.
_entered: ContextVar[Mapping[tuple[object, ThreadKey], Lease]] = ContextVar("locus_mysql_turns")


class Turns(Generic[L]):
    """The turns on threads of a database: the turn of each call, and the locks by which a process waits in order.

    Callers in one process that wait for the same thread wait for a lock; only the first one polls the server.
    """

    def __init__(self) -> None:
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """After a fork, drop the locks: threads of the parent may hold them."""
        self._locks: WeakValueDictionary[object, L] = WeakValueDictionary()
        self._guard = threading.Lock()

    def of(self, key: ThreadKey) -> Lease | None:
        """Return the turn on a thread to which the call belongs."""
        return _entered.get({}).get((self, key))

    def enter(self, lease: Lease) -> None:
        """Let calls of this task or thread belong to this turn from now on."""
        _entered.set({**_entered.get({}), (self, lease.key): lease})

    def leave(self, lease: Lease) -> None:
        """Let calls no longer belong to the turn."""
        _entered.set({key: one for key, one in _entered.get({}).items() if one is not lease})

    def lock(self, key: object, make: type[L]) -> L:
        """Return the lock shared by the callers in this process that wait for the same thread."""
        with self._guard:
            lock = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = make()
            return lock


class LeaseOperations:
    """Acquires, renews and releases leases.

    Args:
        dialect: The tables.
    """

    def __init__(self, dialect: CheckpointDialect) -> None:
        self._sql = dialect

    def acquire(self, lease: Lease) -> Operation[float | None]:
        """Acquire the turn. Return None, or for how many seconds another holder has it. One round trip."""
        sql, key, token, version = self._sql, lease.key, lease.token, os.urandom(16)
        acquire = threads.ACQUIRE(sql, key, token=token, lease_us=_us(lease.lease_s), version=version)
        whose = threads.WHOSE(sql, key, token=token)
        results = yield Batch.of(acquire, whose)
        holder = results.row(whose) or Holder(0, 0)
        left_us = holder.left_us or 0
        lease.may_arrive |= results.fate_unknown
        return None if holder.mine and left_us > 0 else max(0.0, left_us / 1e6)

    def renew(self, lease: Lease) -> Operation[bool]:
        """Renew the turn; False if it was lost."""
        lease_us = _us(lease.lease_s)
        (renewed,) = yield Batch.of(threads.RENEW(self._sql, lease.key, token=lease.token, lease_us=lease_us))
        return renewed.affected > 0

    def release(self, lease: Lease) -> Operation[None]:
        """Release the turn, if it was not lost. A packet that acquires it, and arrives later, does not."""
        sql, key, token = self._sql, lease.key, lease.token
        if lease.may_arrive:
            yield Batch((RECORD(sql, key, token=token),), FIND(sql, key, token=token))
        yield Batch.of(threads.RELEASE(sql, key, token=token), threads.DROP_LEASE(sql, key, token=token))


def check_turn(wait_s: object, lease_s: object) -> tuple[float, float]:
    """Check and return how long to wait for a turn, and how long to hold it without a renewal.

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
