"""Removing checkpoints and copying threads, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.graphs import VersionDialect
from ...dialect.graphs.saving import TOKENS_AT_ONCE
from ...drivers.interface import Row
from ...engine.logs import HOUSEKEEPING
from ...engine.operation import Batch, Duplicate, Operation, Outdated
from ...errors import InvalidInput, ThreadExists
from . import keys
from .version_cache import VersionMemory

#: Runs looked for at a time, and stale threads.
_PAGE = 200


class Removing:
    """Removes checkpoints, keeps what others need of them, and copies threads.

    Args:
        config: The options.
        sql: The statements.
        memory: What the process remembers.
    """

    def __init__(self, config: MySQLConfig, sql: VersionDialect, memory: VersionMemory) -> None:
        self._sql = sql
        self._memory = memory
        self._ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)

    def delete_thread(self, tenant: str, thread_id: str) -> Operation[bool]:
        """Delete a thread with all in it; True if there was one. One round trip."""
        self._memory.forget((tenant, thread_id))
        lock = self._sql.threads.begin_epoch(tenant, thread_id, os.urandom(8))
        removal = (self._sql.ledger.settle_all(tenant, thread_id), *self._sql.threads.delete_all(tenant, thread_id))
        return (yield from self._once(tenant, (lock,), removal)) > 1

    def delete_checkpoint(self, tenant: str, thread_id: str, ns: str, checkpoint_id: str) -> Operation[bool]:
        """Delete a checkpoint with its writes; True if there was one. One round trip.

        Others stay whole: what they need of it is kept, out of sight, until they go as well.
        """
        hide = self._sql.removing.hide_named(tenant, thread_id, keys.version_key(ns, checkpoint_id))
        return (yield from self._remove(tenant, thread_id, hide)) > 0

    def prune(
        self, tenant: str, thread_id: str, keep: int, ns: str | None = None, *, calls: bool = False
    ) -> Operation[int]:
        """Delete all but the newest ``keep`` checkpoints of each namespace, or of one; returns how many went.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            keep: How many stay.
            ns: Only of this namespace.
            calls: Whether finished calls of subgraphs go as well, each with the checkpoint that called it. They are not
                counted.
        """
        hide = self._sql.removing.hide_older(tenant, thread_id, keep, None if ns is None else keys.ns_key(ns))
        return (yield from self._remove(tenant, thread_id, hide, calls=calls))

    def delete_runs(self, tenant: str, run_ids: Sequence[str]) -> Operation[int]:
        """Delete the checkpoints of runs, in all threads; returns how many went. A round trip, and one per thread."""
        removed = 0
        for start in range(0, len(run_ids), _PAGE):
            run_keys = [keys.run_key(run_id) for run_id in run_ids[start : start + _PAGE]]
            (found,) = yield Batch.of(self._sql.removing.threads_of_runs(tenant, run_keys))
            for row in found.rows:
                thread_id = cast(str, row[0])
                hide = self._sql.removing.hide_runs(tenant, thread_id, run_keys)
                removed += yield from self._remove(tenant, thread_id, hide)
        return removed

    def copy_thread(self, tenant: str, source: str, destination: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints and writes; False if there is none. One round trip.

        Raises:
            ThreadExists: The destination has checkpoints. Nothing was changed.
        """
        if source == destination:
            raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
        threads, removing, epoch = self._sql.threads, self._sql.removing, os.urandom(8)
        self._memory.forget((tenant, destination))
        first = (
            threads.begin_epoch(tenant, destination, os.urandom(8)),
            self._sql.ledger.settle_expired(tenant, destination),
            *threads.clear_expired(tenant, destination),
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
        """Delete checkpoints that are older; returns how many.

        Threads that have expired, or were not saved to for so long, go whole. Of others the newest checkpoint of each
        namespace stays, but for calls of subgraphs whose calling checkpoint goes; these are not counted. Writes that
        are older and have no checkpoint go as well, and are not counted. Whatever its age, what damage left goes: rows
        of threads that do not exist, and checkpoints of which a part is gone.
        """
        age_us = int(older_than_s * 1_000_000)
        yield from self._forget_tokens()
        removed = yield from self._remove_damaged(tenant)
        removed += yield from self._remove_stale(tenant, age_us)
        yield from self._remove_orphans(tenant, age_us)
        after = ""
        while True:
            (page,) = yield Batch.of(self._sql.removing.threads_before(tenant, after, age_us, _PAGE))
            for row in page.rows:
                after = cast(str, row[0])
                hide = self._sql.removing.hide_before(tenant, after, age_us)
                removed += yield from self._remove(tenant, after, hide, calls=True)
            if len(page.rows) < _PAGE:
                return removed

    def _forget_tokens(self) -> Operation[None]:
        """Remove the tokens of calls that nobody repeats any more; of all tenants."""
        while True:
            results = yield Batch((self._sql.ledger.forget_old(), self._sql.saving.forget_written()), atomic=False)
            if all(result.affected < TOKENS_AT_ONCE for result in results):
                return

    def _remove_damaged(self, tenant: str) -> Operation[int]:
        """Remove what no operation leaves, but damage may; returns how many checkpoints could be seen of it.

        Checkpoints and parts of threads that do not exist, which nobody sees; and checkpoints of which a part is gone,
        so that they cannot be loaded, nor listed with others.
        """
        removed, after = 0, ""
        while True:
            (page,) = yield Batch.of(self._sql.threads.ids_in_versions(tenant, after, _PAGE))
            yield from self._clear_missing(tenant, page.rows)
            if page.rows:
                first, after = (cast(str, page.rows[place][0]) for place in (0, -1))
                removed += yield from self._remove_broken(tenant, first, after)
            if len(page.rows) < _PAGE:
                break
        after = ""
        while True:
            (page,) = yield Batch.of(self._sql.threads.ids_in_parts(tenant, after, _PAGE))
            yield from self._clear_missing(tenant, page.rows)
            if len(page.rows) < _PAGE:
                return removed
            after = cast(str, page.rows[-1][0])

    def _remove_broken(self, tenant: str, first: str, last: str) -> Operation[int]:
        """Remove checkpoints of which a part is gone, of the threads from one id to another; returns how many."""
        removed = 0
        (found,) = yield Batch.of(self._sql.removing.threads_with_broken(tenant, first, last))
        for row in found.rows:
            thread_id = cast(str, row[0])
            broken = yield from self._remove(tenant, thread_id, self._sql.removing.hide_broken(tenant, thread_id))
            removed += broken
            if broken:
                HOUSEKEEPING.warning(
                    "vacuum removed %d checkpoints of thread %r that could not be loaded: parts of them were gone.",
                    broken,
                    thread_id,
                )
        return removed

    def _clear_missing(self, tenant: str, rows: Sequence[Row]) -> Operation[None]:
        """Clear the ids of a page whose threads do not exist."""
        for thread_id, missing in rows:
            if missing:
                yield from self._clear(tenant, cast(str, thread_id))

    def _clear(self, tenant: str, thread_id: str) -> Operation[None]:
        """Remove what stands under the id of a thread that does not exist, unless it was made meanwhile."""
        threads = self._sql.threads
        lock = threads.begin_epoch(tenant, thread_id, os.urandom(8))
        yield from self._once(
            tenant,
            (lock,),
            (
                self._sql.ledger.settle_expired(tenant, thread_id),
                *threads.clear_expired(tenant, thread_id),
                threads.unlock(tenant, thread_id),
            ),
        )

    def _remove_stale(self, tenant: str, age_us: int) -> Operation[int]:
        """Delete threads that have expired or were not saved to for so long; returns how many checkpoints they had."""
        removed = 0
        while True:
            (found,) = yield Batch.of(self._sql.threads.stale(tenant, age_us, _PAGE))
            went = 0
            for row in found.rows:
                thread_id = cast(str, row[0])
                self._memory.forget((tenant, thread_id))
                lock = self._sql.threads.lock_stale(tenant, thread_id, os.urandom(8), age_us)
                settle = self._sql.ledger.settle_all(tenant, thread_id)
                first = (*lock, settle, self._sql.threads.delete_visible(tenant, thread_id))
                try:
                    removed += yield from self._once(tenant, first, self._sql.threads.delete_all(tenant, thread_id))
                except Outdated:  # it was saved to, or went
                    continue
                went += 1
            if not went:
                return removed

    def _remove_orphans(self, tenant: str, age_us: int) -> Operation[None]:
        """Delete writes that are older and have no checkpoint."""
        after = ""
        while True:
            (page,) = yield Batch.of(self._sql.removing.threads_with_orphans(tenant, after, age_us, _PAGE))
            for row in page.rows:
                after = cast(str, row[0])
                lock = self._sql.threads.begin_epoch(tenant, after, os.urandom(8))
                delete = self._sql.removing.delete_orphans(tenant, after, age_us)
                yield from self._once(tenant, (lock,), (delete, self._sql.threads.unlock(tenant, after)))
            if len(page.rows) < _PAGE:
                return

    def _remove(self, tenant: str, thread_id: str, hide: Statement, *, calls: bool = False) -> Operation[int]:
        """Hide checkpoints, and remove what then nothing needs."""
        self._memory.forget((tenant, thread_id))
        lock = self._sql.threads.begin_epoch(tenant, thread_id, os.urandom(8))
        settle = self._sql.ledger.settle_marked(tenant, thread_id)
        then = self._sql.removing.remove_hidden(tenant, thread_id, settle)
        if calls:
            then = (self._sql.removing.hide_calls(tenant, thread_id), *then)
        return (yield from self._once(tenant, (lock, hide), then))

    def _once(self, tenant: str, first: Sequence[Statement], then: Sequence[Statement]) -> Operation[int]:
        """Carry out statements once, even if their answer is lost; returns what the last of the first ones affected.

        The first statement locks the thread, or the batch is undone. Nothing is done to a thread that is not locked.

        Raises:
            Outdated: A guard among the statements failed. Nothing was done, and nothing will be if it arrives again.
        """
        token = os.urandom(16)
        find = self._sql.ledger.find(tenant, token)
        try:
            results = yield Batch((*first, self._sql.ledger.settle(tenant, token), *then), find)
        except Duplicate as duplicate:
            if duplicate.table != self._sql.names["settled"]:
                raise
        except Outdated as refused:
            if not refused.fate_unknown or (yield from self._settle_late(tenant, token)):
                raise
        else:
            return results[len(first) - 1].affected if results.landed is None else cast(int, results.landed[0])
        # The first try was carried out while the second one was on its way.
        (found,) = yield Batch.of(find)
        return cast(int, found.rows[0][0])

    def _settle_late(self, tenant: str, token: bytes) -> Operation[bool]:
        """Leave the token of what was refused, as its first try may arrive late; False if it was carried out since."""
        own = os.urandom(16)
        try:
            yield Batch(
                (self._sql.ledger.settle(tenant, token), self._sql.ledger.settle(tenant, own)),
                self._sql.ledger.find(tenant, own),
            )
        except Duplicate:
            return False
        return True
