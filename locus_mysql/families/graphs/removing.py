"""Removing checkpoints and copying threads, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.graphs import GraphDialect
from ...dialect.graphs.result_rows import UsedIdRow
from ...dialect.ledger import FORGOTTEN_AT_ONCE
from ...engine.logs import HOUSEKEEPING
from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ...engine.retry import Backoff, next_page
from ...errors import InvalidInput, ThreadExists
from . import keys
from .base_cache import BaseCache

#: Number of runs, and of stale threads, that one query reads.
_PAGE = 200


class Removing:
    """Removes checkpoints, keeps their content that other checkpoints need, and copies threads.

    Args:
        config: The options.
        sql: The statements.
        cache: The cache of threads.
    """

    def __init__(self, config: MySQLConfig, sql: GraphDialect, cache: BaseCache) -> None:
        self._sql = sql
        self._cache = cache
        self._ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)

    def delete_thread(self, tenant: str, thread_id: str) -> Operation[bool]:
        """Delete a thread with all its content; True if it existed. One round trip."""
        self._cache.forget((tenant, thread_id))
        lock = self._sql.threads.begin_epoch(tenant, thread_id, os.urandom(8))
        removal = (self._sql.ledger.record_all(tenant, thread_id), *self._sql.threads.delete_all(tenant, thread_id))
        return (yield from self._once(tenant, (lock,), removal)) > 1

    def delete_checkpoint(self, tenant: str, thread_id: str, ns: str, checkpoint_id: str) -> Operation[bool]:
        """Delete a checkpoint with its writes; True if there was one. One round trip.

        Other checkpoints can still be loaded: the content that they need is kept, hidden, until they are deleted too.
        """
        hide = self._sql.removing.hide_named(tenant, thread_id, keys.checkpoint_key(ns, checkpoint_id))
        return (yield from self._remove(tenant, thread_id, hide)) > 0

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
        hide = self._sql.removing.hide_older(tenant, thread_id, keep, None if ns is None else keys.ns_key(ns))
        return (yield from self._remove(tenant, thread_id, hide, calls=calls))

    def delete_runs(self, tenant: str, run_ids: Sequence[str]) -> Operation[int]:
        """Delete the checkpoints of runs in all threads; returns their number. One round trip, and one per thread."""
        removed = 0
        for start in range(0, len(run_ids), _PAGE):
            run_keys = [keys.run_key(run_id) for run_id in run_ids[start : start + _PAGE]]
            for row in (yield from fetch(self._sql.removing.threads_of_runs(tenant, run_keys))):
                hide = self._sql.removing.hide_runs(tenant, row.thread_id, run_keys)
                removed += yield from self._remove(tenant, row.thread_id, hide)
        return removed

    def copy_thread(self, tenant: str, source: str, destination: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints and writes; False if there is none. One round trip.

        Raises:
            ThreadExists: The destination has checkpoints. Nothing was changed.
        """
        if source == destination:
            raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
        threads, removing, epoch = self._sql.threads, self._sql.removing, os.urandom(8)
        self._cache.forget((tenant, destination))
        first = (
            threads.begin_epoch(tenant, destination, os.urandom(8)),
            self._sql.ledger.record_expired(tenant, destination),
            *threads.clear_expired(tenant, destination),
            removing.hold_source(tenant, source),
            removing.copy_thread(tenant, source, destination, epoch, self._ttl_us),
        )
        then = (
            *removing.copy_content(tenant, source, destination, epoch),
            threads.unlock(tenant, destination),
        )
        try:
            return (yield from self._once(tenant, first, then)) > 0
        except Outdated:
            raise ThreadExists(
                f"Thread {destination!r} has checkpoints already; delete it first or copy to another id."
            ) from None

    def vacuum(self, tenant: str, older_than_s: float) -> Operation[int]:
        """Delete checkpoints that are older; returns their number.

        Threads that have expired, or were not saved for that long, are deleted. Others keep the newest checkpoint of
        each namespace, except for calls of subgraphs whose calling checkpoint is deleted; these are not counted. Older
        writes without a checkpoint are deleted too, and not counted. Remains of damage are deleted whatever their age:
        rows of threads that do not exist, and checkpoints with a missing part.
        """
        age_us = int(older_than_s * 1_000_000)
        yield from self._forget_tokens()
        removed = yield from self._remove_damaged(tenant)
        removed += yield from self._remove_stale(tenant, age_us)
        yield from self._remove_orphans(tenant, age_us)
        after = ""
        while True:
            page = yield from fetch(self._sql.removing.threads_before(tenant, after, age_us, _PAGE))
            for row in page:
                after = next_page(after, row.thread_id)
                hide = self._sql.removing.hide_before(tenant, after, age_us)
                removed += yield from self._remove(tenant, after, hide, calls=True)
            if len(page) < _PAGE:
                return removed

    def _forget_tokens(self) -> Operation[None]:
        """Remove the tokens of calls that can no longer be repeated, of all tenants."""
        while True:
            results = yield Batch((self._sql.ledger.forget_old(), self._sql.saving.forget_written()), atomic=False)
            if all(result.affected < FORGOTTEN_AT_ONCE for result in results):
                return

    def _remove_damaged(self, tenant: str) -> Operation[int]:
        """Remove rows that only damage can have left; returns how many visible checkpoints were among them.

        These are checkpoints and parts of threads that do not exist, which are invisible; and checkpoints with a
        missing part, which can be neither loaded nor listed.
        """
        removed, after = 0, ""
        while True:
            page = yield from fetch(self._sql.threads.ids_in_checkpoints(tenant, after, _PAGE))
            yield from self._clear_missing(tenant, page)
            if page:
                first, after = page[0].thread_id, next_page(after, page[-1].thread_id)
                removed += yield from self._remove_broken(tenant, first, after)
            if len(page) < _PAGE:
                break
        after = ""
        while True:
            page = yield from fetch(self._sql.threads.ids_in_parts(tenant, after, _PAGE))
            yield from self._clear_missing(tenant, page)
            if len(page) < _PAGE:
                return removed
            after = next_page(after, page[-1].thread_id)

    def _remove_broken(self, tenant: str, first: str, last: str) -> Operation[int]:
        """Remove checkpoints with a missing part from the threads between two ids; returns their number."""
        removed = 0
        for row in (yield from fetch(self._sql.removing.threads_with_broken(tenant, first, last))):
            thread_id = row.thread_id
            broken = yield from self._remove(tenant, thread_id, self._sql.removing.hide_broken(tenant, thread_id))
            removed += broken
            if broken:
                HOUSEKEEPING.warning(
                    "vacuum removed %d checkpoints of thread %r that could not be loaded: parts of them were missing.",
                    broken,
                    thread_id,
                )
        return removed

    def _clear_missing(self, tenant: str, rows: Sequence[UsedIdRow]) -> Operation[None]:
        """Clear the ids of a page whose threads do not exist."""
        for row in rows:
            if row.missing:
                yield from self._clear(tenant, row.thread_id)

    def _clear(self, tenant: str, thread_id: str) -> Operation[None]:
        """Remove the rows under the id of a thread that does not exist, unless the thread was created meanwhile."""
        threads = self._sql.threads
        lock = threads.begin_epoch(tenant, thread_id, os.urandom(8))
        yield from self._once(
            tenant,
            (lock,),
            (
                self._sql.ledger.record_expired(tenant, thread_id),
                *threads.clear_expired(tenant, thread_id),
                threads.unlock(tenant, thread_id),
            ),
        )

    def _remove_stale(self, tenant: str, age_us: int) -> Operation[int]:
        """Delete threads that have expired or were not saved for that long; returns the number of checkpoints."""
        removed, backoff = 0, Backoff("Threads that were deleted as too old were found again")
        while True:
            found = yield from fetch(self._sql.threads.stale(tenant, age_us, _PAGE))
            backoff.compare(found)
            went = 0
            for row in found:
                thread_id = row.thread_id
                self._cache.forget((tenant, thread_id))
                lock = self._sql.threads.lock_stale(tenant, thread_id, os.urandom(8), age_us)
                record = self._sql.ledger.record_all(tenant, thread_id)
                first = (*lock, record, self._sql.threads.delete_visible(tenant, thread_id))
                try:
                    removed += yield from self._once(tenant, first, self._sql.threads.delete_all(tenant, thread_id))
                except Outdated:  # it was saved or deleted meanwhile
                    continue
                went += 1
            if not went:
                return removed

    def _remove_orphans(self, tenant: str, age_us: int) -> Operation[None]:
        """Delete writes that are older and have no checkpoint."""
        after = ""
        while True:
            page = yield from fetch(self._sql.removing.threads_with_orphans(tenant, after, age_us, _PAGE))
            for row in page:
                after = next_page(after, row.thread_id)
                lock = self._sql.threads.begin_epoch(tenant, after, os.urandom(8))
                delete = self._sql.removing.delete_orphans(tenant, after, age_us)
                yield from self._once(tenant, (lock,), (delete, self._sql.threads.unlock(tenant, after)))
            if len(page) < _PAGE:
                return

    def _remove(self, tenant: str, thread_id: str, hide: Statement, *, calls: bool = False) -> Operation[int]:
        """Hide checkpoints, and remove rows that nothing needs any more."""
        self._cache.forget((tenant, thread_id))
        lock = self._sql.threads.begin_epoch(tenant, thread_id, os.urandom(8))
        record = self._sql.ledger.record_marked(tenant, thread_id)
        then = self._sql.removing.remove_hidden(tenant, thread_id, record)
        if calls:
            then = (self._sql.removing.hide_calls(tenant, thread_id), *then)
        return (yield from self._once(tenant, (lock, hide), then))

    def _once(self, tenant: str, first: Sequence[Statement], then: Sequence[Statement]) -> Operation[int]:
        """Execute statements once, even if the response is lost; returns the row count of the last of ``first``.

        The first statement locks the thread, or the batch is undone. Nothing is done to a thread that is not locked.

        Raises:
            Outdated: A guard among the statements failed; nothing was done.
        """
        token = os.urandom(16)
        find = self._sql.ledger.find(tenant, token)
        try:
            results = yield Batch((*first, self._sql.ledger.record_affected(tenant, token), *then), find)
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
