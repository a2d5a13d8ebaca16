"""Removing what is old, has expired, or is no longer needed, as generators that do no I/O."""

from __future__ import annotations

import os
from datetime import datetime
from typing import cast

from ...dialect import Statement
from ...engine.logs import HOUSEKEEPING, told
from ...engine.operation import Batch, Operation, Outdated
from ...errors import InvalidInput, LocusMySQLError, Unavailable
from ...runtime.sampling import one_in
from .base import OperationsBase
from .rows import Change, as_sql_time, rewritten

#: One save in this many, by chance, also removes threads that have expired, if threads expire at all.
SAVES_PER_CLEANING = 64

#: Expired threads removed at once by a save.
CLEANED_PER_SAVE = 10

#: One save in this many, by chance, also indexes the text of the checkpoints saved since that was last done.
SAVES_PER_INDEXING = 32

#: Checkpoints whose text is indexed at once by a save.
INDEXED_PER_SAVE = 2 * SAVES_PER_INDEXING

#: Threads looked up at a time.
PAGE = 100

#: How many times a rewrite is tried, as it begins anew if the thread was changed meanwhile.
_REWRITES = 10

#: An age that no thread has, in microseconds: a thousand years.
_NEVER_US = 1_000 * 365 * 86_400 * 1_000_000


class CleaningOperations(OperationsBase):
    """What keeps the tables small, and the rewriting of whole threads."""

    def rewrite_thread(self, tenant: str, thread_id: str, change: Change) -> Operation[None]:
        """Replace the state of every checkpoint of a thread, in place: ids, order, times and metadata stay.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            change: Gives the new states. It may be asked again for the same checkpoint.

        Raises:
            Unavailable: Somebody wrote to the thread during every try.
            CorruptCheckpoint: A row of the thread is damaged; nothing was changed.
        """
        threads, ledger = self.sql.threads, self.sql.ledger
        for _ in range(_REWRITES):
            (found,) = yield Batch.of(self.sql.maintenance.read_thread(tenant, thread_id))
            if not found.rows:
                return
            known_version, version = cast(bytes, found.rows[0][-1]), os.urandom(16)
            rows = rewritten(found.rows, change, thread_id, compression=self.config.compression)
            landed = ledger.find(tenant, version)
            try:
                yield Batch.named(
                    threads.lock_unchanged(tenant, thread_id, version, known_version),
                    threads.guard(landed),
                    ledger.settle_rows(tenant, thread_id),
                    ledger.settle(tenant, version),
                    self.sql.checkpoints.delete_all(tenant, thread_id),
                    tuple(self.sql.maintenance.put_row(tenant, thread_id, row) for row in rows),
                    landed=landed,
                )
            except Outdated:
                continue
            self.memory.forget((tenant, thread_id))
            return
        raise Unavailable(f"Thread {thread_id!r} was saved to all the time; try again when it is quiet.")

    def threads_with_old_messages(self, tenant: str, before: datetime, after: str, limit: int) -> Operation[list[str]]:
        """A page of ids of threads with a checkpoint whose oldest message is from before a time."""
        moment = as_sql_time(before)
        (found,) = yield Batch.of(self.sql.maintenance.threads_with_old_messages(tenant, moment, after, limit))
        return [cast(str, row[0]) for row in found.rows]

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[int]:
        """Remove a tenant's old checkpoints, a few threads at a time; returns how many.

        A thread that was not saved to for that long goes whole. Others lose the checkpoints that are older than that,
        but never the newest. Threads that have expired go too, and so do rows that nothing needs any more.
        """
        age_us = _age_us(older_than_days)
        yield from self._adopt_orphans(tenant)
        yield Batch.of(self.sql.ledger.forget_old())
        removed = yield from self._remove_expired(tenant)
        after = ""
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.threads_before(tenant, age_us, after, PAGE))
            for thread_id, idle in page.rows:
                after = cast(str, thread_id)
                if idle:
                    removed += yield from self._remove_idle(tenant, after, age_us)
                else:
                    removed += yield from self._prune(tenant, after, age_us)
            if len(page.rows) < PAGE:
                HOUSEKEEPING.debug("vacuum removed checkpoints: %d.", removed)
                return removed

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Delete all of a tenant's threads, one at a time; returns how many checkpoints there were.

        The tenant's name stays a little longer, beside the random tokens by which a repeated delete is recognised:
        these are kept for a quarter of an hour, and then until the next clean-up.
        """
        removed = 0
        while True:
            yield from self._adopt_orphans(tenant)
            (page,) = yield Batch.of(self.sql.maintenance.tenant_threads(tenant, PAGE))
            for (thread_id,) in page.rows:
                place, token = (tenant, cast(str, thread_id)), os.urandom(16)
                landed = self.sql.ledger.find(tenant, token)
                removed += yield from self._remove(self.sql.threads.lock_any(*place, token), landed, place, token)
            if not page.rows:
                yield Batch.of(self.sql.ledger.forget_old())
                return removed

    def _prune(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        unname = self.sql.maintenance.unname_before(tenant, thread_id, age_us)
        try:
            results = yield Batch.named(
                self.sql.threads.lock(tenant, thread_id, os.urandom(16)),
                self.sql.threads.guard(),
                self.sql.checkpoints.delete_left_behind(tenant, thread_id),
                self.sql.ledger.settle_rows(tenant, thread_id),
                unname,
                self.sql.maintenance.sweep(tenant, thread_id),
                unname=unname,
            )
        except Outdated:  # it went meanwhile
            return 0
        return results.named("unname").affected

    def _sweep(self, tenant: str, thread_id: str) -> Operation[None]:
        """Remove everything that no checkpoint of a thread needs any more."""
        try:
            yield Batch.named(
                self.sql.threads.lock(tenant, thread_id, os.urandom(16)),
                self.sql.threads.guard(),
                self.sql.maintenance.sweep(tenant, thread_id),
            )
        except Outdated:
            return

    def _adopt_orphans(self, tenant: str) -> Operation[None]:
        """Give threads that have checkpoints but no row their rows back. Only damage can have left them so."""
        while True:
            (page,) = yield Batch.of(self.sql.threads.orphaned(tenant, PAGE))
            for (thread_id,) in page.rows:
                yield Batch.of(self.sql.threads.adopt(tenant, cast(str, thread_id), os.urandom(16), self.ttl_us))
            if len(page.rows) < PAGE:
                return

    def _remove_idle(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        token = os.urandom(16)
        lock = self.sql.threads.lock_idle(tenant, thread_id, token, age_us)
        landed = self.sql.ledger.find(tenant, token)
        return (yield from self._remove(lock, landed, (tenant, thread_id), token))

    def _remove(self, lock: Statement, landed: Statement, place: tuple[str, str], token: bytes) -> Operation[int]:
        """Remove a whole thread if it can be locked; returns how many checkpoints it had, as far as that is known."""
        count = self.sql.maintenance.count_named(*place)
        try:
            results = yield Batch.named(
                lock,
                self.sql.threads.guard(landed),
                count,
                self.sql.ledger.settle_rows(*place),
                self.sql.ledger.settle(place[0], token),
                self.sql.checkpoints.delete_all(*place),
                self.sql.threads.drop(*place),
                landed=landed,
                count=count,
            )
        except Outdated:  # it went meanwhile, or was saved to
            return 0
        finally:
            self.memory.forget(place)
        return 0 if results.landed is not None else cast(int, results.named("count").rows[0][0])

    def _remove_expired(self, tenant: str) -> Operation[int]:
        removed = 0
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.expired(tenant, PAGE))
            for owner, thread_id in page.rows:
                removed += yield from self._remove_idle(cast(str, owner), cast(str, thread_id), _NEVER_US)
            if len(page.rows) < PAGE:
                return removed

    def housekeeping(self, tenant: str, thread_id: str, *, added_text: bool, sweep: bool) -> Operation[None]:
        """What a save does after it for its thread where necessary, and now and then for others.

        When that is, is left to chance, because a process may end after a few saves. The save itself has been carried
        out by then, so a failure is only logged, and another save does what was not done.
        """
        try:
            if sweep:
                yield from self._sweep(tenant, thread_id)
            if added_text and one_in(SAVES_PER_INDEXING):
                index = self.sql.queries.index_pending(INDEXED_PER_SAVE, skip_locked=True)
                yield Batch((index, self.sql.ledger.forget_old()), atomic=False)
            if self.ttl_us is not None and one_in(SAVES_PER_CLEANING):
                (page,) = yield Batch.of(self.sql.maintenance.expired(None, CLEANED_PER_SAVE))
                for owner, expired in page.rows:
                    yield from self._remove_idle(cast(str, owner), cast(str, expired), _NEVER_US)
                HOUSEKEEPING.debug("A save removed threads that have expired: %d.", len(page.rows))
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("A checkpoint was saved, but the housekeeping after it failed: %s.", told(error))


def _age_us(days: float) -> int:
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= 365_000:
        raise InvalidInput(f"older_than_days must be a number from 0 to 365000, not {days!r:.50}.")
    return int(days * 86_400 * 1_000_000)
