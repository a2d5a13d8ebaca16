"""Removes old, expired and unneeded rows. Generators that do no I/O."""

from __future__ import annotations

import os

from ...config import MySQLConfig
from ...dialect import Query, Statement
from ...dialect.checkpoints.dialect import CheckpointDialect
from ...dialect.checkpoints.tables import Kind
from ...dialect.ledger import OutcomeRow
from ...engine.logs import HOUSEKEEPING, loggable
from ...engine.operation import Batch, Operation, Outdated, fetch, one_in
from ...engine.retry import Backoff, next_page
from ...errors import LocusMySQLError
from ...runtime.arguments import check_days
from ...runtime.ledger import affected_rows
from ..family import Count, Counts
from .context import Context

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

#: An age that no thread has, in microseconds: a thousand years.
_NEVER_US = 1_000 * 365 * 86_400 * 1_000_000


class ThreadMaintenance:
    """Removes old, expired and unneeded rows.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._sql = context.sql
        self._context = context
        self._ttl_us = context.ttl_us

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[int]:
        """Remove a tenant's old checkpoints, a few threads at a time; returns their number.

        A thread without a save during that time is deleted entirely. Other threads lose their older checkpoints, but
        never the newest. Expired threads and rows that nothing refers to are deleted too.
        """
        age_us = _age_us(older_than_days)
        yield from self._restore_missing_rows(tenant)
        yield Batch.of(self._sql.ledger.forget_old())
        removed = yield from self._remove_expired(tenant)
        after = ""
        while True:
            page = yield from fetch(self._sql.maintenance.threads_before(tenant, age_us, after, PAGE))
            for thread in page:
                after = next_page(after, thread.thread_id)
                if thread.idle:
                    removed += yield from self._remove_idle(tenant, after, age_us)
                else:
                    removed += yield from self._prune(tenant, after, age_us)
            if len(page) < PAGE:
                HOUSEKEEPING.debug("vacuum removed checkpoints: %d.", removed)
                return removed

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Delete all of a tenant's threads, one at a time; returns the number of checkpoints.

        The tenant's name remains for a while in the ledger, with the random tokens that identify a repeated delete:
        they are kept for a quarter of an hour, and then until the next clean-up.
        """
        removed, backoff = 0, Backoff("Deleted threads of the tenant were found again")
        while True:
            yield from self._restore_missing_rows(tenant)
            page = yield from fetch(self._sql.maintenance.tenant_threads(tenant, PAGE))
            backoff.compare(page)
            for thread in page:
                key, token = (tenant, thread.thread_id), os.urandom(16)
                outcome_query = self._sql.ledger.find(tenant, token)
                removed += yield from self._remove(self._sql.threads.lock_any(*key, token), outcome_query, key, token)
            if not page:
                yield Batch.of(self._sql.ledger.forget_old())
                return removed

    def _prune(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        clear_id, token = self._sql.maintenance.clear_ids_before(tenant, thread_id, age_us), os.urandom(16)
        outcome_query = self._sql.ledger.find(tenant, token)
        try:
            results = yield Batch.of(
                self._sql.threads.lock(tenant, thread_id, token),
                self._sql.threads.guard(outcome_query),
                self._sql.checkpoints.delete_left_behind(tenant, thread_id),
                self._sql.ledger.record_all(tenant, thread_id),
                clear_id,
                self._sql.ledger.record_affected(tenant, token),
                self._sql.maintenance.sweep(tenant, thread_id),
                outcome_query=outcome_query,
            )
        except Outdated:  # it was deleted meanwhile
            return 0
        return affected_rows(results, clear_id, outcome_query)

    def _sweep(self, tenant: str, thread_id: str) -> Operation[None]:
        """Remove everything that no checkpoint of a thread needs any more."""
        try:
            yield Batch.of(
                self._sql.threads.lock(tenant, thread_id, os.urandom(16)),
                self._sql.threads.guard(),
                self._sql.maintenance.sweep(tenant, thread_id),
            )
        except Outdated:
            return

    def _restore_missing_rows(self, tenant: str) -> Operation[None]:
        """Recreate missing rows of threads that have checkpoints. Only damage leaves a thread without its row."""
        backoff = Backoff("Threads whose rows were made again were found without them")
        while True:
            page = yield from fetch(self._sql.threads.orphaned(tenant, PAGE))
            backoff.compare(page)
            for thread in page:
                yield Batch.of(self._sql.threads.restore_row(tenant, thread.thread_id, os.urandom(16), self._ttl_us))
            if len(page) < PAGE:
                return

    def _remove_idle(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        token = os.urandom(16)
        lock = self._sql.threads.lock_idle(tenant, thread_id, token, age_us)
        outcome_query = self._sql.ledger.find(tenant, token)
        return (yield from self._remove(lock, outcome_query, (tenant, thread_id), token))

    def _remove(
        self, lock: Statement, outcome_query: Query[OutcomeRow], key: tuple[str, str], token: bytes
    ) -> Operation[int]:
        """Remove a whole thread if it can be locked; returns the number of its checkpoints."""
        try:
            results = yield Batch.of(
                lock,
                self._sql.threads.guard(outcome_query),
                self._sql.ledger.record_all(*key),
                self._sql.ledger.record_count(*key, token),
                self._sql.checkpoints.delete_all(*key),
                self._sql.threads.drop(*key),
                outcome_query,
                outcome_query=outcome_query,
            )
        except Outdated:  # it was deleted or saved to meanwhile
            return 0
        finally:
            self._context.cache.forget(key)
        return results.rows(outcome_query)[0].outcome or 0

    def _remove_expired(self, tenant: str) -> Operation[int]:
        removed, backoff = 0, Backoff("Expired threads that were deleted were found again")
        while True:
            page = yield from fetch(self._sql.maintenance.expired(tenant, PAGE))
            backoff.compare(page)
            for thread in page:
                removed += yield from self._remove_idle(*thread, _NEVER_US)
            if len(page) < PAGE:
                return removed

    def after_save(self, tenant: str, thread_id: str, *, added_text: bool, sweep: bool) -> Operation[None]:
        """Do the maintenance after a save: for its thread where necessary, and occasionally for others.

        The occasions are chosen at random, because a process may end after a few saves.
        """
        if sweep:
            yield from _logged(self._sweep(tenant, thread_id))
        if added_text and one_in(SAVES_PER_INDEXING):
            yield from _logged(self._index_pending())
        if self._ttl_us is not None and one_in(SAVES_PER_CLEANING):
            yield from _logged(self._clean())

    def _index_pending(self) -> Operation[None]:
        index = self._sql.queries.index_pending(INDEXED_PER_SAVE, skip_locked=True)
        yield Batch((index, self._sql.ledger.forget_old()), atomic=False)

    def _clean(self) -> Operation[None]:
        page = yield from fetch(self._sql.maintenance.expired(None, CLEANED_PER_SAVE))
        for thread in page:
            yield from self._remove_idle(*thread, _NEVER_US)
        HOUSEKEEPING.debug("A save removed threads that have expired: %d.", len(page))


def _logged(maintenance: Operation[None]) -> Operation[None]:
    """Do the maintenance after a save. The save is complete by then: a failure is only logged, and repeated later."""
    try:
        yield from maintenance
    except LocusMySQLError as error:
        HOUSEKEEPING.warning("A checkpoint was saved, but the housekeeping after it failed: %s.", loggable(error))


def _age_us(days: float) -> int:
    return int(check_days(days) * 86_400 * 1_000_000)


class CheckpointMaintenance:
    """Counts threads and removes old checkpoints of one kind of states. See `Maintenance`.

    Args:
        config: The options.
        kind: The kind of states.
    """

    def __init__(self, config: MySQLConfig, kind: Kind) -> None:
        self._tenant = config.tenant
        dialect = CheckpointDialect(config.table_prefix, kind, search=config.search, search_parser=config.search_parser)
        self._threads = ThreadMaintenance(Context(config, dialect))
        self._sql = dialect

    def stored(self) -> Operation[Counts]:
        """Count threads. One round trip."""
        ((number,),) = yield from fetch(self._sql.threads.count(self._tenant, "*"))
        return (Count(number, "{thread}"),)

    def waste(self) -> Operation[Counts]:
        """Return no counts: saves remove unneeded rows, except for old checkpoints."""
        return ()
        yield

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove checkpoints older than this many days. A thread not saved since is deleted."""
        removed = yield from self._threads.vacuum(self._tenant, older_than_days)
        return (Count(removed, "{checkpoint}"),)
