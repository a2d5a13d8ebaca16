"""Removes checkpoints and threads: on request, and those that are old, expired or unneeded. Generators without I/O."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, cast

from ...engine.logs import HOUSEKEEPING
from ...engine.operation import Batch, Operation, Outdated, fetch
from ...engine.retry import Backoff
from ...records.ledger import FIND, FORGET_OLD, FORGOTTEN_AT_ONCE, RECORD_AFFECTED, affected_rows, in_passing, logged
from ...records.maintenance import Count, Counts, Maintenance, Upkeep
from ...records.tables import Row
from ...runtime.arguments import check_checkpoint_id, check_thread_id, microseconds
from .family import tables
from .statements import queries, removing, threads
from .statements.tables import CheckpointDialect, Kind, ThreadKey
from .thread_cache import Context

#: On average, one save in this many also removes expired threads, if threads expire at all.
SAVES_PER_CLEANING = 64

#: Expired threads removed at once by a save.
CLEANED_PER_SAVE = 10

#: On average, one save in this many also indexes the text of checkpoints saved since the last indexing.
SAVES_PER_INDEXING = 32

#: Checkpoints whose text is indexed at once by a save.
INDEXED_PER_SAVE = 2 * SAVES_PER_INDEXING

#: Threads looked up at a time.
PAGE = 100


class Removing:
    """Deletes checkpoints and threads on request.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sql = context.sql

    def delete(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a thread; True if there was one. One round trip.

        The call's own turn continues; another caller's turn is lost with the thread. States that build on a deleted
        checkpoint can still be loaded. An expired thread is deleted too, but the result is False.
        """
        key = ThreadKey(tenant, check_thread_id(thread_id))
        if checkpoint_id is None:
            return (yield from self._delete_thread(key))
        return (yield from self._delete_checkpoint(key, check_checkpoint_id(checkpoint_id)))

    def _delete_thread(self, key: ThreadKey) -> Operation[bool]:
        sql = self._sql
        tokens: dict[str, Any] = {"token": os.urandom(16), "token_if_expired": os.urandom(16)}
        lock = threads.LOCK_ANY(sql, key, version=tokens["token"])
        outcome_query = removing.FIND_EITHER(sql, key, **tokens)
        batch = Batch.of(
            lock,
            removing.GUARD_DELETE(sql, key, **tokens),
            removing.RECORD_ALL(sql, key),
            removing.RECORD_EITHER(sql, key, **tokens),
            removing.DELETE_ALL(sql, key),
            threads.DROP(sql, key),
            outcome_query=outcome_query,
        )
        try:
            results = yield from self._context.turns.delete(batch, key)
        except Outdated:
            return False
        finally:
            self._context.cache.forget(key)
        if results.earlier_attempt is not None:
            return results.rows(outcome_query)[0].outcome == 1
        return results.of(lock).last_insert_id == 1

    def _delete_checkpoint(self, key: ThreadKey, checkpoint_id: str) -> Operation[bool]:
        sql, token = self._sql, os.urandom(16)
        before = self._context.cache.snapshot(key)
        lock = threads.LOCK(sql, key, version=token, known_version=before.version or b"")
        clear_id = removing.CLEAR_ID(sql, key, checkpoint_id=checkpoint_id)
        batch = Batch.of(
            lock,
            threads.GUARD_ONCE(sql, key, token=token),
            removing.RECORD_DELETED(sql, key, checkpoint_id=checkpoint_id, token=token),
            clear_id,
            removing.remove_unneeded(sql, key),
            threads.DROP_IF_EMPTY(sql, key),
            outcome_query=FIND(sql, key, token=token),
        )
        try:
            results = yield from self._context.turns.write(batch, key)
        except Outdated:
            self._context.cache.forget(key, before)
            return False
        if results.earlier_attempt is not None:
            self._context.cache.forget(key)
            return True
        cleared = results.of(clear_id)
        version = token if results.of(lock).last_insert_id == 1 else None
        self._context.cache.delete_checkpoint(
            key, before, cleared.last_insert_id if cleared.affected else None, version
        )
        return cleared.affected > 0


class CheckpointUpkeep(Upkeep):
    """Removes old checkpoints of threads that are still used, and repairs threads without their rows.

    Args:
        sql: The tables.
        ttl_s: The time to live of a thread whose row is made again.
    """

    def __init__(self, sql: CheckpointDialect, ttl_s: float | None) -> None:
        self._sql = sql
        self._ttl_us = microseconds(ttl_s)

    def vacuum(self, tenant: str, age_us: int) -> Operation[Counts]:
        """Remove a tenant's old checkpoints, a few threads at a time, but never the newest of a thread."""
        removed = yield from self.each(
            partial(removing.THREADS_BEFORE, self._sql, tenant=tenant, age_us=age_us),
            lambda thread_id: self._prune(ThreadKey(tenant, thread_id), age_us),
            PAGE,
        )
        HOUSEKEEPING.debug("vacuum removed checkpoints: %d.", removed)
        return (Count(removed, "{checkpoint}"),)

    def _prune(self, key: ThreadKey, age_us: int) -> Operation[int]:
        sql, token = self._sql, os.urandom(16)
        clear_ids = removing.CLEAR_IDS_BEFORE(sql, key, age_us=age_us)
        outcome_query = FIND(sql, key, token=token)
        try:
            results = yield Batch.of(
                threads.LOCK(sql, key, version=token, known_version=b""),
                threads.GUARD_ONCE(sql, key, token=token),
                removing.DELETE_LEFT_BEHIND(sql, key),
                removing.RECORD_ALL(sql, key),
                clear_ids,
                RECORD_AFFECTED(sql, key, token=token),
                removing.sweep(sql, key),
                outcome_query=outcome_query,
            )
        except Outdated:  # it was deleted meanwhile
            return 0
        return affected_rows(results, clear_ids, outcome_query)

    def repair(self, tenant: str) -> Operation[None]:
        """Recreate missing rows of threads that have checkpoints. Only damage leaves a thread without its row."""
        backoff = Backoff("Threads whose rows were made again were found without them")
        while True:
            page = yield from fetch(threads.ORPHANED(self._sql, tenant=tenant, limit=PAGE))
            backoff.compare(page)
            for thread in page:
                key, version = ThreadKey(tenant, thread.thread_id), os.urandom(16)
                yield Batch.of(threads.RESTORE_ROW(self._sql, key, version=version, ttl_us=self._ttl_us))
            if len(page) < PAGE:
                return


class ThreadMaintenance:
    """Removes old, expired and unneeded rows, also from the caches.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._sql = context.sql
        self._context = context
        config, kind = context.config, cast(Kind, context.sql.schema.family)
        declared = tables(config.table_prefix, kind, search=config.search, search_parser=config.search_parser)
        self._owners = Maintenance(declared, CheckpointUpkeep(context.sql, config.ttl_s), self._forget)

    def _forget(self, thread: Row) -> None:
        self._context.cache.forget(ThreadKey(thread["tenant"], thread["thread_id"]))

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[int]:
        """Remove a tenant's old checkpoints, a few threads at a time; returns their number.

        A thread without a save during that time is deleted entirely. Other threads lose their older checkpoints, but
        never the newest. Expired threads and rows that nothing refers to are deleted too.
        """
        (removed,) = yield from self._owners.vacuum(tenant, older_than_days)
        return removed.number

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Delete all of a tenant's threads, one at a time; returns the number of checkpoints.

        The tenant's name remains for a while in the ledger, with the random tokens that identify a repeated delete:
        they are kept for a quarter of an hour, and then until the next clean-up.
        """
        return (yield from self._owners.forget(tenant)).units

    def _sweep(self, key: ThreadKey) -> Operation[None]:
        """Remove everything that no checkpoint of a thread needs any more."""
        try:
            yield Batch.of(
                threads.LOCK(self._sql, key, version=os.urandom(16), known_version=b""),
                threads.GUARD(self._sql),
                removing.sweep(self._sql, key),
            )
        except Outdated:
            return

    def after_save(self, key: ThreadKey, *, added_text: bool, sweep: bool) -> Operation[None]:
        """Do the maintenance after a save: for its thread where necessary, and occasionally for others.

        The occasions are chosen at random, because a process may end after a few saves.
        """
        if sweep:
            yield from logged(self._sweep(key))
        if added_text:
            yield from in_passing(self._index_pending, every=SAVES_PER_INDEXING)
        if self._context.ttl_us is not None:
            yield from in_passing(self._clean, every=SAVES_PER_CLEANING)

    def _index_pending(self) -> Operation[None]:
        yield housekeeping(self._sql, INDEXED_PER_SAVE)

    def _clean(self) -> Operation[None]:
        removed = yield from self._owners.remove_expired(CLEANED_PER_SAVE)
        HOUSEKEEPING.debug("A save removed checkpoints of threads that have expired: %d.", removed)


def housekeeping(sql: CheckpointDialect, checkpoints: int) -> Batch:
    """Return a batch that indexes the text of a number of checkpoints, and removes old tokens of the ledger."""
    index = queries.INDEX_PENDING(sql, pieces=queries.SKIP_LOCKED, limit=checkpoints)
    return Batch((index, FORGET_OLD(sql, limit=FORGOTTEN_AT_ONCE)), atomic=False)
