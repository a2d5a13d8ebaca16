"""Deleting checkpoints and threads, as generators that do no I/O."""

from __future__ import annotations

import os

from ...engine.operation import Batch, Operation, Outdated
from ...runtime.arguments import check_checkpoint_id, check_thread_id
from .context import Context
from .preconditions import Preconditions


class Removing:
    """Deletes checkpoints and threads.

    Args:
        context: The objects shared by the store's operations.
        preconditions: Checks the turn that a delete belongs to.
    """

    def __init__(self, context: Context, preconditions: Preconditions) -> None:
        self._context = context
        self._sql = context.sql
        self._preconditions = preconditions

    def delete(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a thread; True if there was one. One round trip.

        The call's own turn continues; another caller's turn is lost with the thread. States that build on a deleted
        checkpoint can still be loaded. An expired thread is deleted too, but the result is False.
        """
        check_thread_id(thread_id)
        if checkpoint_id is None:
            return (yield from self._delete_thread(tenant, thread_id))
        return (yield from self._delete_checkpoint(tenant, thread_id, check_checkpoint_id(checkpoint_id)))

    def _delete_thread(self, tenant: str, thread_id: str) -> Operation[bool]:
        threads, ledger = self._sql.threads, self._sql.ledger
        token, token_if_expired = os.urandom(16), os.urandom(16)
        lock = threads.lock_any(tenant, thread_id, token)
        outcome_query = ledger.find_either(tenant, token, token_if_expired)
        key = (tenant, thread_id)
        condition = self._preconditions.in_turn(key)
        try:
            results = yield Batch.of(
                lock,
                threads.guard(outcome_query),
                tuple(condition.guards(self._sql, key)),
                ledger.record_all(tenant, thread_id),
                ledger.record_either(tenant, token, token_if_expired),
                self._sql.checkpoints.delete_all(tenant, thread_id),
                self._sql.turns.keep_lease(*key) if condition else threads.drop(*key),
                outcome_query=outcome_query,
            )
        except Outdated:
            if condition:
                yield from self._preconditions.check(key, condition)
            return False
        finally:
            self._context.cache.forget(key)
        if results.earlier_attempt is not None:
            return results.rows(outcome_query)[0].outcome == 1
        return results.of(lock).last_insert_id == 1

    def _delete_checkpoint(self, tenant: str, thread_id: str, checkpoint_id: str) -> Operation[bool]:
        threads, checkpoints, token = self._sql.threads, self._sql.checkpoints, os.urandom(16)
        key = (tenant, thread_id)
        condition = self._preconditions.in_turn(key)
        before = self._context.cache.snapshot(key)
        lock = threads.lock(tenant, thread_id, token, before.version or b"")
        clear_id = checkpoints.clear_id(tenant, thread_id, checkpoint_id)
        outcome_query = self._sql.ledger.find(tenant, token)
        try:
            results = yield Batch.of(
                lock,
                threads.guard(outcome_query),
                tuple(condition.guards(self._sql, key)),
                self._sql.ledger.record_deleted(tenant, thread_id, checkpoint_id, token),
                clear_id,
                checkpoints.remove_unneeded(tenant, thread_id),
                self._sql.turns.keep_lease_if_empty(*key) if condition else threads.drop_if_empty(*key),
                outcome_query=outcome_query,
            )
        except Outdated:
            if condition:
                yield from self._preconditions.check(key, condition)
            self._context.cache.forget(key, before)
            return False
        if results.earlier_attempt is not None:
            self._context.cache.forget(key)
            return True
        unnamed = results.of(clear_id)
        version = token if results.of(lock).last_insert_id == 1 else None
        self._context.cache.delete_checkpoint(
            key, before, unnamed.last_insert_id if unnamed.affected else None, version
        )
        return unnamed.affected > 0
