"""Removing checkpoints and copying threads, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.sql import Dialect
from ...engine.logs import HOUSEKEEPING
from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ...engine.retry import next_page
from ...errors import ThreadExists
from ...records.leases import Turns
from ...records.ledger import FIND, FORGOTTEN_AT_ONCE, RECORD_AFFECTED
from ...records.maintenance import Count, Counts, Upkeep
from ...runtime.arguments import microseconds
from ...runtime.sealing import Sealing
from .loading import BaseCache
from .saving import forget_tokens
from .statements import removing, tables, threads
from .statements.tables import ThreadKey

#: Number of runs, and of threads, that one query reads.
_PAGE = 200


class Removing(Upkeep):
    """Removes checkpoints, keeps their content that other checkpoints need, and copies threads.

    Args:
        config: The options.
        sql: The tables.
        cache: The cache of threads.
        turns: The turns on threads.
    """

    def __init__(self, config: MySQLConfig, sql: Dialect, cache: BaseCache, turns: Turns) -> None:
        self._turns = turns
        self._sql = sql
        self._cache = cache
        self._ttl_us = microseconds(config.ttl_s)

    def delete_thread(self, tenant: str, thread_id: str) -> Operation[bool]:
        """Delete a thread with all its content; True if it existed. One round trip."""
        key = ThreadKey(tenant, thread_id)
        self._cache.forget(key)
        removal = (threads.RECORD_ALL, *threads.DELETE_ALL)
        removal_of = [one(self._sql, key) for one in removal]
        return (yield from self._once(key, (self._begin_epoch(key),), removal_of, ends_turn=True)) > 1

    def delete_checkpoint(self, tenant: str, thread_id: str, ns: str, checkpoint_id: str) -> Operation[bool]:
        """Delete a checkpoint with its writes; True if there was one. One round trip.

        Other checkpoints can still be loaded: the content that they need is kept, hidden, until they are deleted too.
        """
        key = ThreadKey(tenant, thread_id)
        hide = removing.HIDE_NAMED(self._sql, key, checkpoint_key=tables.checkpoint_key(ns, checkpoint_id))
        return (yield from self._remove(key, hide)) > 0

    def prune(
        self, tenant: str, thread_id: str, keep: int, ns: str | None = None, *, calls: bool = False
    ) -> Operation[int]:
        """Delete all but the newest ``keep`` checkpoints of each namespace, or of one; returns their number.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            keep: The number of checkpoints to keep.
            ns: Only of this namespace.
            calls: Whether finished calls of subgraphs are deleted too, each with the checkpoint that called it. They
                are not counted.
        """
        key, ns_key = ThreadKey(tenant, thread_id), None if ns is None else tables.ns_key(ns)
        pieces = {"namespace": "" if ns is None else removing.OF_NAMESPACE}
        hide = removing.HIDE_OLDER(self._sql, key, keep=keep, ns_key=ns_key, pieces=pieces)
        return (yield from self._remove(key, hide, calls=calls))

    def delete_runs(self, tenant: str, run_ids: Sequence[str]) -> Operation[int]:
        """Delete the checkpoints of runs in all threads; returns their number. One round trip, and one per thread."""
        removed = 0
        for start in range(0, len(run_ids), _PAGE):
            run_keys = [tables.run_key(run_id) for run_id in run_ids[start : start + _PAGE]]
            found = yield from fetch(removing.THREADS_OF_RUNS(self._sql, tenant=tenant, run_keys=run_keys))
            for row in found:
                key = ThreadKey(tenant, row.thread_id)
                removed += yield from self._remove(key, removing.HIDE_RUNS(self._sql, key, run_keys=run_keys))
        return removed

    def copy_thread(self, tenant: str, source: str, destination: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints and writes; False if there is none. One round trip.

        Raises:
            EncryptionError: A row is encrypted. Nothing was changed.
            ThreadExists: The destination has checkpoints. Nothing was changed.
        """
        sql, key, copy, epoch = self._sql, ThreadKey(tenant, source), ThreadKey(tenant, destination), os.urandom(8)
        sealing = Sealing(None, sql.schema.family)
        shift = sealing.of(*key).shift(sealing.of(*copy))
        self._cache.forget(copy)
        first = (
            self._begin_epoch(copy),
            *self._clear_expired(copy),
            removing.HOLD_SOURCE(sql, key),
            removing.COPY_THREAD(sql, key, destination=destination, epoch=epoch, ttl_us=self._ttl_us),
        )
        content = [one(sql, key, destination=destination, epoch=epoch, shift=shift) for one in removing.COPY_CONTENT]
        try:
            return (yield from self._once(copy, first, (*content, threads.UNLOCK(sql, copy)))) > 0
        except Outdated:
            for row in (yield from fetch(removing.ENCRYPTED(sql, key))):
                sealing.open(row.stored, f"Thread {source!r}", "payload")
            raise ThreadExists(
                f"Thread {destination!r} has checkpoints already; delete it first or copy to another id."
            ) from None

    def vacuum(self, tenant: str, age_us: int) -> Operation[Counts]:
        """Remove checkpoints that are older, but not the newest of a namespace, and rows that nothing needs.

        Calls of subgraphs whose calling checkpoint is deleted are removed with it; these are not counted. Older
        writes without a checkpoint are deleted too, and not counted. Remains of damage are deleted whatever their age:
        rows of threads that do not exist, and checkpoints with a missing part.
        """
        yield from self._forget_tokens()
        removed = yield from self._remove_damaged(tenant)
        yield from self._remove_orphans(tenant, age_us)
        removed += yield from self.each(
            partial(removing.THREADS_BEFORE, self._sql, tenant=tenant, age_us=age_us),
            lambda thread_id: self._remove_before(ThreadKey(tenant, thread_id), age_us),
            _PAGE,
        )
        return (Count(removed, "{checkpoint}"),)

    def _remove_before(self, key: ThreadKey, age_us: int) -> Operation[int]:
        return (yield from self._remove(key, removing.HIDE_BEFORE(self._sql, key, age_us=age_us), calls=True))

    def _forget_tokens(self) -> Operation[None]:
        """Remove the tokens of calls that can no longer be repeated, of all tenants."""
        while True:
            results = yield forget_tokens(self._sql)
            if all(result.affected < FORGOTTEN_AT_ONCE for result in results):
                return

    def _remove_damaged(self, tenant: str) -> Operation[int]:
        """Remove rows that only damage can have left; returns how many visible checkpoints were among them.

        These are checkpoints and parts of threads that do not exist, which are invisible; and checkpoints with a
        missing part, which can be neither loaded nor listed.
        """
        removed = 0
        for table in ("{checkpoints}", "{parts}"):
            after = ""
            while True:
                page = yield from fetch(
                    threads.IDS_IN(self._sql, tenant=tenant, after=after, limit=_PAGE, pieces={"table": table})
                )
                for row in page:
                    if row.missing:
                        yield from self._clear(ThreadKey(tenant, row.thread_id))
                if page:
                    first, after = page[0].thread_id, next_page(after, page[-1].thread_id)
                    if table == "{checkpoints}":
                        removed += yield from self._remove_broken(tenant, first, after)
                if len(page) < _PAGE:
                    break
        return removed

    def _remove_broken(self, tenant: str, first: str, last: str) -> Operation[int]:
        """Remove checkpoints with a missing part from the threads between two ids; returns their number."""
        removed = 0
        found = yield from fetch(removing.THREADS_WITH_BROKEN(self._sql, tenant=tenant, first=first, last=last))
        for row in found:
            key = ThreadKey(tenant, row.thread_id)
            broken = yield from self._remove(key, removing.HIDE_BROKEN(self._sql, key))
            removed += broken
            if broken:
                HOUSEKEEPING.warning(
                    "vacuum removed %d checkpoints of thread %r that could not be loaded: parts of them were missing.",
                    broken,
                    row.thread_id,
                )
        return removed

    def _clear(self, key: ThreadKey) -> Operation[None]:
        """Remove the rows under the id of a thread that does not exist, unless the thread was created meanwhile."""
        then = (*self._clear_expired(key), threads.UNLOCK(self._sql, key))
        yield from self._once(key, (self._begin_epoch(key),), then)

    def _remove_orphans(self, tenant: str, age_us: int) -> Operation[None]:
        """Delete writes that are older and have no checkpoint."""

        def delete(thread_id: str) -> Operation[int]:
            key = ThreadKey(tenant, thread_id)
            orphans = removing.DELETE_ORPHANS(self._sql, key, age_us=age_us)
            return (yield from self._once(key, (self._begin_epoch(key),), (orphans, threads.UNLOCK(self._sql, key))))

        find = partial(removing.THREADS_WITH_ORPHANS, self._sql, tenant=tenant, age_us=age_us)
        yield from self.each(find, delete, _PAGE)

    def _begin_epoch(self, key: ThreadKey) -> Statement:
        return threads.BEGIN_EPOCH(self._sql, key, epoch=os.urandom(8))

    def _clear_expired(self, key: ThreadKey) -> list[Statement]:
        return [one(self._sql, key) for one in (threads.RECORD_EXPIRED, *threads.CLEAR_EXPIRED)]

    def _remove(self, key: ThreadKey, hide: Statement, *, calls: bool = False) -> Operation[int]:
        """Hide checkpoints, and remove rows that nothing needs any more.

        Args:
            key: The thread.
            hide: The statement that hides them.
            calls: Whether the calls of subgraphs whose calling checkpoint is hidden are hidden, too.
        """
        self._cache.forget(key)
        then = (*((removing.HIDE_CALLS,) if calls else ()), *removing.REMOVE_HIDDEN)
        return (yield from self._once(key, (self._begin_epoch(key), hide), [one(self._sql, key) for one in then]))

    def _once(
        self, key: ThreadKey, first: Sequence[Statement], then: Sequence[Statement], *, ends_turn: bool = False
    ) -> Operation[int]:
        """Execute statements once, even if the response is lost; returns the row count of the last of ``first``.

        The first statement locks the thread, or the batch is undone. Nothing is done to a thread that is not locked.

        Raises:
            Outdated: A guard among the statements failed; nothing was done.
        """
        token = os.urandom(16)
        find = FIND(self._sql, key, token=token)
        batch = Batch((*first, RECORD_AFFECTED(self._sql, key, token=token), *then), find)
        try:
            results = yield from (self._turns.delete if ends_turn else self._turns.write)(batch, key)
        except Duplicate as duplicate:
            if duplicate.table != self._sql.names["ledger"]:
                raise
        else:
            if results.earlier_attempt is None:
                return results.of(first[-1]).affected
            return results.rows(find)[0].outcome or 0
        # The first attempt was carried out while the second one was being sent.
        (row,) = yield from fetch(find)
        return row.outcome or 0
