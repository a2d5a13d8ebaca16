"""Turns as leases, without I/O: `Lease`, and `Turns`, which makes the writes of a call part of its turn.

A lease is a row of the family's ledger: its token is a digest of the owner's key, its outcome the holder, a random
number, and its time the end of the lease by the server's clock; so it is forgotten like any other token. A process
never relies on its own knowledge of it: every write in a turn checks in its transaction that the holder has the lease,
and keeps the row locked until it is committed, so that the turn cannot be taken over meanwhile. The lease is locked
before the owner in all transactions.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from ..dialect import Statement
from ..dialect.sql import SQL, Dialect, Select
from ..engine.operation import Batch, Duplicate, Operation, Outdated, Results
from ..errors import InvalidInput, TurnLost
from ..runtime.database import Database
from .ledger import FIND, RECORD, record_each

#: Limits of a turn's arguments, in seconds.
LONGEST_LEASE_S = 3600.0
SHORTEST_LEASE_S = 0.5
LONGEST_WAIT_S = 86_400.0

#: Number of renewals within the duration of a lease.
RENEWALS = 4

#: The key of an owner: the tenant, and the values of the owner's key.
OwnerKey: TypeAlias = tuple[str | bytes, ...]

#: The token of an owner's lease, as `lease_token` returns it, for the columns of a row ``o``; `used` fills it in.
_TOKEN = "LEFT(UNHEX(SHA2(CONCAT_WS(CHAR(0), 'turn', {0}), 256)), 16)"  # noqa: S105 - a digest


class HolderRow(NamedTuple):
    """Whether a holder has a lease, and the lease's remaining microseconds."""

    mine: int
    left_us: int


#: Acquires a lease if it is free, if the same holder has it already, as an answer may have been lost, or if it is to be
#: taken over. If the token of this acquisition is in the ledger, this packet is late and acquires nothing. The
#: assignments run left to right.
ACQUIRE = SQL("""
INSERT INTO {ledger} (tenant, token, outcome, recorded_at)
SELECT :tenant, :lease, :holder, UTC_TIMESTAMP(6) + INTERVAL :lease_us MICROSECOND
  FROM DUAL
 WHERE NOT EXISTS (SELECT 1 FROM {ledger} l WHERE l.tenant = :tenant AND l.token = :token)
    ON DUPLICATE KEY UPDATE
       outcome     = IF(:take_over = 0 AND recorded_at > UTC_TIMESTAMP(6), outcome, :holder),
       recorded_at = IF(outcome = :holder, UTC_TIMESTAMP(6) + INTERVAL :lease_us MICROSECOND, recorded_at)
""")

#: Prevents an acquisition whose packet may still arrive.
PREVENT = record_each("SELECT :tenant, :token, UTC_TIMESTAMP(6) FROM DUAL")

WHOSE = Select(
    """
SELECT l.outcome = :holder, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.recorded_at)
  FROM {ledger} l
 WHERE l.tenant = :tenant AND l.token = :lease AND l.recorded_at > UTC_TIMESTAMP(6)
""",
    HolderRow,
)

#: Extends a lease; affects no row if it was lost.
RENEW = SQL("""
UPDATE {ledger}
   SET recorded_at = UTC_TIMESTAMP(6) + INTERVAL :lease_us MICROSECOND
 WHERE tenant = :tenant AND token = :lease AND outcome = :holder AND recorded_at > UTC_TIMESTAMP(6)
""")

#: Releases a lease, if the holder still has it.
RELEASE = SQL("DELETE FROM {ledger} WHERE tenant = :tenant AND token = :lease AND outcome = :holder")

#: Ends the leases of owners, whoever holds them.
END = SQL("DELETE FROM {ledger} WHERE tenant = :tenant AND token IN (:leases)")

#: Undoes the batch, with error 3141, unless the holder has the lease, which stays so until the transaction ends.
FENCE = SQL("""
SELECT CAST(IF(COUNT(*) = 1, '1', '') AS JSON)
  FROM {ledger} l
 WHERE l.tenant = :tenant AND l.token = :lease AND l.outcome = :holder AND l.recorded_at > UTC_TIMESTAMP(6)
   FOR SHARE
""")

_LOST = "it was not renewed in time, another caller took it over, or what it is about was deleted"


class Lease:
    """A turn on an owner, as long as it is held.

    Args:
        key: The key of the owner.
        name: The owner's name, for messages.
        lease_s: Its duration from the last renewal.
        take_over: Whether it is acquired although another holder has it.
    """

    def __init__(self, key: OwnerKey, name: str, lease_s: float, *, take_over: bool = False) -> None:
        self.key = key
        self.name = name
        self.lease_s = lease_s
        self.take_over = take_over
        self.token = os.urandom(16)
        self.ended = False
        #: Whether the server reported that the lease expired or was revoked.
        self.lost = False
        #: Whether a packet that acquires it may still reach the server.
        self.may_arrive = False
        self._process = os.getpid()

    @property
    def here(self) -> bool:
        """Return whether this process acquired it: after a fork, it is the parent's."""
        return self._process == os.getpid()

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of most statements."""
        holder = int.from_bytes(self.token[:8]) >> 1
        return {"tenant": self.key[0], "lease": lease_token(self.key), "holder": holder}

    def check(self) -> None:
        """Check that a write may use this lease.

        Raises:
            TurnLost: It ended, belongs to the parent process, or was lost.
        """
        if not self.here:
            raise TurnLost(self.name, "the turn belongs to the parent process")
        if self.ended:
            raise TurnLost(self.name, "its block has ended")
        if self.lost:
            raise TurnLost(self.name, _LOST)


class Registry:
    """The locks by which the callers in a process wait in order for a turn: only the first one polls the server."""

    def __init__(self) -> None:
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """After a fork, drop the locks: threads of the parent may hold them."""
        self._locks: WeakValueDictionary[object, Any] = WeakValueDictionary()
        self._guard = threading.Lock()

    def lock(self, key: object, make: type[Any]) -> Any:
        """Return the lock shared by the callers that wait for the same owner."""
        with self._guard:
            lock = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = make()
            return lock


#: The turns of the running task or thread, inherited by its tasks; by the `Registry` of the tables and the owner.
_entered: ContextVar[Mapping[tuple[object, OwnerKey], Lease]] = ContextVar("locus_mysql_turns")


class Turns:
    """The turns on owners of one family's tables.

    Args:
        dialect: The tables.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._sql = dialect
        self.registry = Registry()

    def attach(self, database: Database) -> None:
        """Share the turns of the database's stores; see `HasCaches.attach`."""
        self.registry = database.registry(("turns", self._sql.names["ledger"]), Registry)

    def of(self, key: OwnerKey) -> Lease | None:
        """Return the turn on an owner to which the call belongs."""
        return _entered.get({}).get((self.registry, key))

    def enter(self, lease: Lease) -> None:
        """Let calls of this task or thread belong to this turn from now on."""
        _entered.set({**_entered.get({}), (self.registry, lease.key): lease})

    def leave(self, lease: Lease) -> None:
        """Let calls no longer belong to the turn."""
        _entered.set({key: one for key, one in _entered.get({}).items() if one is not lease})

    def write(self, batch: Batch, *keys: OwnerKey, deleted: Sequence[OwnerKey] = ()) -> Operation[Results]:
        """Carry out a batch that writes to owners, as part of the turns on them that the call is in.

        Args:
            batch: The batch.
            keys: The owners.
            deleted: Those of them that it deletes: it ends turns of other callers on these, and not the call's own.

        Raises:
            TurnLost: Such a turn is over; nothing was written.
        """
        if others := [key for key in deleted if self.of(key) is None]:
            batch = replace(batch, statements=(ended(self._sql, others), *batch.statements))
        leases = [lease for key in keys if (lease := self.of(key)) is not None]
        if not leases:
            return (yield batch)
        for lease in leases:
            lease.check()
        fences = tuple(FENCE(self._sql, **lease.values) for lease in leases)
        try:
            return (yield replace(batch, statements=(*fences, *batch.statements)))
        except Outdated:
            for lease in leases:
                whose = WHOSE(self._sql, **lease.values)
                held, _ = _holder((yield Batch((whose,))).row(whose))
                if not held:
                    lease.lost = True
                    raise TurnLost(lease.name, _LOST) from None
            raise

    def delete(self, batch: Batch, key: OwnerKey) -> Operation[Results]:
        """Carry out a batch that deletes an owner; see `write`."""
        return (yield from self.write(batch, key, deleted=[key]))

    def acquire(self, lease: Lease) -> Operation[float | None]:
        """Acquire a turn. Return None, or for how many seconds another holder has it. One round trip."""
        values, sql = lease.values, self._sql
        whose = WHOSE(sql, **values)
        lease_us, take_over = _us(lease.lease_s), int(lease.take_over)
        acquire = ACQUIRE(sql, **values, token=lease.token, lease_us=lease_us, take_over=take_over)
        if not lease.take_over:
            results = yield Batch.of(acquire, whose)
        else:  # a duplicate of this packet that arrives late must not take the turn back
            record, outcome = RECORD(sql, **values, token=lease.token), FIND(sql, **values, token=lease.token)
            try:
                results = yield Batch.of(acquire, record, whose, outcome_query=outcome)
            except Duplicate:
                results = yield Batch((whose,))
            else:
                if results.earlier_attempt is not None:
                    results = yield Batch((whose,))
        lease.may_arrive |= results.fate_unknown
        mine, left_s = _holder(results.row(whose))
        return None if mine else left_s

    def renew(self, lease: Lease) -> Operation[bool]:
        """Renew a turn; False if it was lost."""
        (renewed,) = yield Batch.of(RENEW(self._sql, **lease.values, lease_us=_us(lease.lease_s)))
        return renewed.affected > 0

    def release(self, lease: Lease) -> Operation[None]:
        """Release a turn, if it was not lost. A packet that acquires it, and arrives later, does not."""
        if lease.may_arrive:
            yield Batch.of(PREVENT(self._sql, **lease.values, token=lease.token))
        yield Batch.of(RELEASE(self._sql, **lease.values))


def lease_token(key: OwnerKey) -> bytes:
    """Return the token of an owner's lease."""
    names = (one if isinstance(one, bytes) else one.encode() for one in ("turn", *key[1:]))
    return hashlib.sha256(b"\0".join(names), usedforsecurity=False).digest()[:16]


def _holder(row: HolderRow | None) -> tuple[bool, float]:
    """Return whether the holder has the lease, and for how many seconds anybody has it."""
    return (False, 0.0) if row is None else (bool(row.mine), row.left_us / 1e6)


def ended(dialect: Dialect, keys: Sequence[OwnerKey]) -> Statement:
    """Return the statement that ends the turns on owners of one tenant, which are about to be removed."""
    return END(dialect, tenant=keys[0][0], leases=[lease_token(key) for key in keys])


def unused(columns: Sequence[str]) -> str:
    """Return the condition that nobody has a turn on an owner, the row ``o``; these columns are its key."""
    token = _TOKEN.replace("{0}", ", ".join(f"o.{column}" for column in columns))
    return (
        "NOT EXISTS (SELECT 1 FROM {ledger} l"  # noqa: S608 - constants
        f" WHERE l.tenant = o.tenant AND l.token = {token} AND l.recorded_at > UTC_TIMESTAMP(6))"
    )


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
