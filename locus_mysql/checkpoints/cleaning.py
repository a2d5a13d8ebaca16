"""Removing what is old, expired or needed no more, as generators that do no I/O."""

from __future__ import annotations

import logging
import os
from datetime import datetime
from random import random
from typing import cast

from ..engine.operation import Batch, Operation
from ..errors import InvalidInput, LocusMySQLError, Unavailable
from .base import OperationsBase
from .rows import Change, as_sql_time, rewritten

#: A save in this many, by chance, also removes threads that have expired, if threads expire.
SAVES_PER_CLEANING = 64

#: Expired threads removed at once by a save.
CLEANED_PER_SAVE = 10

#: A save in this many, by chance, also indexes the text of checkpoints saved since that was last done.
SAVES_PER_INDEXING = 32

#: Checkpoints whose text is indexed at once by a save.
INDEXED_PER_SAVE = 2 * SAVES_PER_INDEXING

#: How often a rewrite is begun anew because the thread was changed meanwhile.
_REWRITES = 10

#: An age that no thread has, in microseconds: a thousand years.
_NEVER_US = 1_000 * 365 * 86_400 * 1_000_000

_LOG = logging.getLogger(__name__)


class CleaningOperations(OperationsBase):
    """What keeps the tables small, and the rewriting of whole threads."""

    def rewrite_thread(self, tenant: str, thread_id: str, change: Change) -> Operation[None]:
        """Replace the state of every checkpoint of a thread, in place: ids, order, times and metadata stay.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            change: Gives the new states. It may be asked again for the same checkpoint.

        Raises:
            Unavailable: The thread was being written to all the time.
            CorruptCheckpoint: A row of the thread is damaged; nothing was changed.
        """
        for _ in range(_REWRITES):
            (found,) = yield Batch.of(self.sql.maintenance.read_thread(tenant, thread_id))
            if not found.rows:
                return
            known_version, version = cast(bytes, found.rows[0][-1]), os.urandom(16)
            rows = rewritten(found.rows, change, thread_id, compression=self.config.compression)
            locked, *_ = yield Batch.of(
                *self.sql.maintenance.clear_unchanged(tenant, thread_id, known_version, version),
                *(self.sql.maintenance.put_row(tenant, thread_id, version, row) for row in rows),
            )
            if locked.affected:
                self.known.forget((tenant, thread_id))
                return
        raise Unavailable(f"Thread {thread_id!r} was saved to all the time; try again when it is quiet.")

    def threads_with_old_messages(self, tenant: str, before: datetime, after: str, limit: int) -> Operation[list[str]]:
        """A page of ids of threads with a checkpoint whose oldest message is from before a time."""
        moment = as_sql_time(before)
        (found,) = yield Batch.of(self.sql.maintenance.threads_with_old_messages(tenant, moment, after, limit))
        return [cast(str, row[0]) for row in found.rows]

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[int]:
        """Remove a tenant's old checkpoints, a few threads at a time; returns how many.

        A thread not saved to for that long goes whole. Others lose checkpoints older than that, never the newest.
        Expired threads go too, and rows that nothing needs any more.
        """
        age_us = _age_us(older_than_days)
        removed = yield from self._remove_expired(tenant)
        after = ""
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.threads_before(tenant, age_us, after, 100))
            for thread_id, idle in page.rows:
                after = cast(str, thread_id)
                if idle:
                    removed += yield from self._remove_idle(tenant, after, age_us)
                else:
                    removed += yield from self._prune(tenant, after, age_us)
            if len(page.rows) < 100:
                return removed

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Delete all of a tenant's threads, one at a time; returns how many checkpoints there were."""
        removed = 0
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.tenant_threads(tenant, 100))
            for (thread_id,) in page.rows:
                place = (tenant, cast(str, thread_id))
                self.known.forget(place)
                _, counted, *_ = yield Batch.of(
                    self.sql.threads.lock(*place),
                    self.sql.maintenance.count_named(*place),
                    self.sql.checkpoints.delete_all(*place),
                    self.sql.threads.drop(*place),
                )
                removed += cast(int, counted.rows[0][0])
            if not page.rows:
                return removed

    def _prune(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        _, _, dropped, *_ = yield Batch.of(
            self.sql.threads.lock(tenant, thread_id),
            self.sql.checkpoints.delete_left_behind(tenant, thread_id),
            self.sql.maintenance.unname_before(tenant, thread_id, age_us),
            *self.sql.maintenance.sweep(tenant, thread_id),
        )
        return dropped.affected

    def sweep(self, tenant: str, thread_id: str) -> Operation[None]:
        """Remove all that no checkpoint of a thread needs any more."""
        yield Batch.of(self.sql.threads.lock(tenant, thread_id), *self.sql.maintenance.sweep(tenant, thread_id))

    def _remove_idle(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        self.known.forget((tenant, thread_id))
        _, counted, *_ = yield Batch(self.sql.maintenance.remove_idle(tenant, thread_id, age_us))
        return cast(int, counted.rows[0][0])

    def _remove_expired(self, tenant: str) -> Operation[int]:
        removed = 0
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.expired(tenant, 100))
            for owner, thread_id in page.rows:
                removed += yield from self._remove_idle(cast(str, owner), cast(str, thread_id), _NEVER_US)
            if len(page.rows) < 100:
                return removed

    def housekeeping(self, *, added_text: bool) -> Operation[None]:
        """What a save does for others, now and then: by chance, as a process may end after a few saves."""
        try:
            if added_text and its_turn(SAVES_PER_INDEXING):
                yield Batch.of(self.sql.queries.index_pending(INDEXED_PER_SAVE, skip_locked=True))
            if self.ttl_us is not None and its_turn(SAVES_PER_CLEANING):
                (page,) = yield Batch.of(self.sql.maintenance.expired(None, CLEANED_PER_SAVE))
                for owner, thread_id in page.rows:
                    yield from self._remove_idle(cast(str, owner), cast(str, thread_id), _NEVER_US)
        except LocusMySQLError as error:  # the save itself is done, and another one will do this
            _LOG.warning("A checkpoint was saved, but the housekeeping after it failed: %s", error)


def its_turn(one_in: int) -> bool:
    """Whether this save, of so many, is the one to do something for the others."""
    return random() * one_in < 1  # noqa: S311 - spreads work, guards no secret


def _age_us(days: float) -> int:
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= 365_000:
        raise InvalidInput(f"older_than_days must be a number from 0 to 365000, not {days!r:.50}.")
    return int(days * 86_400 * 1_000_000)
