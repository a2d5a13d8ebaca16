"""Saving checkpoints, as a generator that does no I/O: `Saving`."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import uuid4

from ...dialect import Query, Statement
from ...dialect.sql import RETENTION_S
from ...engine.operation import Batch, Duplicate, Operation, Outdated, Results
from ...engine.retry import Backoff
from ...errors import CheckpointExists, ParentMissing, SchemaMismatch, Unavailable
from ...runtime.arguments import check_checkpoint_id, check_thread_id, encode_metadata
from ...runtime.sealing import Sealing
from . import preconditions
from .coding.codec import HashedLogs, hash_logs
from .coding.delta import Ancestor, Delta, Lineage, encode_delta, extend, lasting
from .loading import Loading
from .maintenance import ThreadMaintenance
from .preconditions import NOTHING_EXPECTED, Precondition
from .records import EncodedCheckpoint, NewCheckpoint, ParentRule, assemble_rows, row_of
from .statements import removing, saving, threads
from .statements.saving import NewRow, Saved
from .statements.tables import ThreadKey
from .thread_cache import CachedState, Context, Snapshot

#: A save with a precondition is repeated at most this many times because the thread was written to meanwhile.
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Basis:
    """The states that a save builds on, and the checks to make under the thread's lock.

    Args:
        lineage: The states it may build on; the first is its parent. Empty if none is known.
        version: The thread's version at which all of the lineage existed, if that is known.
        must_be_newest: The lineage's first state must be the newest checkpoint.
        or_newest: Without a lineage, the parent is the thread's newest checkpoint.
    """

    lineage: Lineage = ()
    version: bytes | None = None
    must_be_newest: bool = False
    or_newest: bool = False


def remembered(before: Snapshot, hashed: HashedLogs, *, provisional: bool) -> Basis:
    """Return the state that this process loaded or saved last as the basis; without one, the newest checkpoint."""
    lineage = before.lineage_for(hashed)
    usable = lineage if provisional else lasting(lineage)
    return Basis(lineage, before.version, or_newest=not usable)


def newest(before: Snapshot) -> Basis:
    """Return the thread's newest checkpoint as the basis. It is used only if the thread still has the known version.

    If another checkpoint of the thread was loaded by its id, that one may be the newest.
    """
    if before.version is None:
        return Basis(or_newest=True)
    if before.newest:
        return Basis(before.newest, before.version, or_newest=True)
    lineage = before.lineages[0] if before.lineages else ()
    return Basis(lineage, before.version, must_be_newest=True, or_newest=True)


class _Save(NamedTuple):
    """What all attempts of a save have in common.

    Args:
        key: The thread.
        new: The checkpoint to save.
        checkpoint_id: Its id.
        token: The token of its row.
        metadata: Its metadata as text, and the keys by which it is found.
        encoded: Its state.
        hashed: The state's logs.
        precondition: The conditions of the save.
        sealing: Seals the rows of the thread.
    """

    key: ThreadKey
    new: NewCheckpoint
    checkpoint_id: str
    token: bytes
    metadata: tuple[str | None, str | None]
    encoded: EncodedCheckpoint
    hashed: HashedLogs
    precondition: Precondition
    sealing: Sealing

    @property
    def parent_missing(self) -> ParentMissing:
        """Return the error for a parent that was named and does not exist."""
        return ParentMissing(
            f"Thread {self.key.thread_id!r} has no checkpoint {self.new.parent!r} to continue; nothing was saved. Name "
            "an existing parent, or none to continue the newest checkpoint."
        )


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What an attempt of a save assumes, and what those before it have shown.

    Args:
        before: The cached snapshot of the thread.
        basis: The states that the save builds on.
        replaces: Whether a checkpoint of this id is replaced. An id that this process did not save is taken to be new
            until the server refuses it: replacing takes six statements instead of two.
        row_restored: Whether a missing thread row was restored.
        refusals: How often the thread was found to be changed or deleted.
        pruned_several: Whether the ids of several older checkpoints were cleared, so that the thread needs a sweep.
    """

    before: Snapshot
    basis: Basis
    replaces: bool
    row_restored: bool = False
    refusals: int = 0
    pruned_several: bool = False

    def without_basis(self) -> _Attempt:
        """Return an attempt that stores a whole state."""
        return replace(self, basis=Basis(or_newest=self.basis.or_newest))


class _Transaction(NamedTuple):
    """The batch of a save, and the statements whose results are evaluated."""

    batch: Batch
    outcome_query: Query[Saved]
    take: Statement
    insert: Statement
    prune: Statement | None

    def saved(self, results: Results) -> Saved | None:
        """Return which row was saved by this or an earlier attempt; None if none was, as the basis was removed."""
        if results.earlier_attempt is not None:
            return results.row(self.outcome_query)
        return Saved(results.of(self.take).last_insert_id) if results.of(self.insert).affected else None


class Saving:
    """Saves checkpoints.

    Args:
        context: The objects shared by the store's operations.
        loading: Loads the states that a save builds on.
        maintenance: Cleans up after a save.
    """

    def __init__(self, context: Context, loading: Loading, maintenance: ThreadMaintenance) -> None:
        self.context = context
        self.loading = loading
        self.maintenance = maintenance

    def save(
        self, tenant: str, thread_id: str, new: NewCheckpoint, precondition: Precondition = NOTHING_EXPECTED
    ) -> Operation[str]:
        """Store a state as the newest checkpoint of its thread; return its id.

        One round trip; another one if another process wrote to the thread since this process last read it, if the row
        that the state would build on was removed by then, and occasionally for housekeeping. An id of a checkpoint that
        this process did not save costs two more; a named parent one more; a parent that is the newest checkpoint two
        more if another process wrote to the thread.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            new: The state.
            precondition: The conditions of the save.

        Raises:
            Conflict: The thread's newest checkpoint is not the one that the precondition names.
            TurnLost: The call's turn is over.
            CheckpointExists: The id is taken, and must be new.
            ParentMissing: There is no checkpoint of the id that was named as the parent.
            SchemaMismatch: The rows of the thread are damaged.
            Unavailable: Other processes wrote to the thread during every attempt.
        """
        key = ThreadKey(tenant, check_thread_id(thread_id))
        before = self.context.cache.snapshot(key)
        save = self._prepare(key, new, precondition, before)
        # An id that this process stored, or found, is expected to be replaced.
        named = new.checkpoint_id is not None and not new.must_be_new
        replaces = named and self.context.known_ids.get((key, new.checkpoint_id)) is not None
        attempt = _Attempt(before, (yield from self._first_basis(save, before)), replaces)
        backoff: Backoff | None = None
        while True:
            delta = encode_delta(
                save.encoded.state,
                save.hashed,
                attempt.basis.lineage,
                provisional=new.provisional,
                compression=self.context.config.compression,
                held={} if attempt.before.state is None else attempt.before.state.hashed,
            )
            search = self.context.config.search
            row = row_of(new, save.checkpoint_id, save.token, delta, save.metadata, save.sealing, search=search)
            transaction = self._transaction(save, attempt, row, delta)
            try:
                results = yield from self.context.turns.write(transaction.batch, key)
            except Duplicate as error:
                attempt = yield from self._after_duplicate(save, attempt, error)
            except Outdated:
                attempt = yield from self._after_outdated(save, attempt)
            else:
                if new.checkpoint_id is not None and not (new.provisional or new.must_be_new):
                    self._remember_id(save)
                if transaction.prune is not None:  # the number of ids that an earlier attempt cleared is not known
                    several = results.earlier_attempt is not None or results.of(transaction.prune).affected > 1
                    attempt = replace(attempt, pruned_several=attempt.pruned_several or several)
                saved = transaction.saved(results)
                if saved is not None:
                    break
                if isinstance(new.parent, str):
                    raise save.parent_missing
                attempt = attempt.without_basis()
            backoff = backoff or Backoff(f"Other writers changed thread {thread_id!r} before a state was saved to it")
            backoff.check()
        self._remember(save, attempt, delta, saved)
        added_text = saved.seq is not None and row.search_text is not None
        yield from self.maintenance.after_save(key, added_text=added_text, sweep=attempt.pruned_several)
        return save.checkpoint_id

    def _prepare(self, key: ThreadKey, new: NewCheckpoint, precondition: Precondition, before: Snapshot) -> _Save:
        checkpoint_id = uuid4().hex if new.checkpoint_id is None else check_checkpoint_id(new.checkpoint_id)
        metadata = (None, None) if new.metadata is None else encode_metadata(new.metadata)
        state = before.state
        encoded = new.encode(state.memo if state else None)
        hashed = hash_logs(encoded.state, state.hashed if state else {})
        token = new.token or os.urandom(16)
        sealing = self.context.sealing.of(*key)
        return _Save(key, new, checkpoint_id, token, metadata, encoded, hashed, precondition, sealing)

    def _first_basis(self, save: _Save, before: Snapshot) -> Operation[Basis]:
        """Return the basis of the first attempt. No round trip, unless a parent is named.

        Raises:
            ParentMissing: There is no checkpoint of the id that was named.
        """
        new = save.new
        if new.parent is ParentRule.REMEMBERED:
            return remembered(before, save.hashed, provisional=new.provisional)
        if new.parent is ParentRule.NEWEST:
            return newest(before)
        rows = yield from self.loading.named_rows(save.key, new.parent)
        if not rows:
            raise save.parent_missing
        return Basis(assemble_rows(rows, save.key.thread_id, save.sealing)[1])

    def _remember(self, save: _Save, attempt: _Attempt, delta: Delta, saved: Saved) -> None:
        """Cache the saved state."""
        cache, before = self.context.cache, attempt.before
        if saved.seq is None:  # an earlier attempt saved the row, which was replaced, pruned or deleted since
            cache.forget(save.key, before)
            return
        lineage = extend(attempt.basis.lineage, delta, saved.seq, save.token, provisional=save.new.provisional)
        encoded = save.encoded
        state = CachedState(encoded.state, save.hashed, encoded.memo, encoded.memo_bytes, save.checkpoint_id)
        cache.remember(save.key, before, before.after_save(lineage, state))

    def _remember_id(self, save: _Save) -> None:
        """Let the next save of this id replace its checkpoint at once."""
        self.context.known_ids.put((save.key, save.checkpoint_id), True)

    def _after_duplicate(self, save: _Save, attempt: _Attempt, error: Duplicate) -> Operation[_Attempt]:
        """Return another attempt after a duplicate key error.

        Raises:
            CheckpointExists: The id is taken, and must be new.
            SchemaMismatch: The rows of the thread are damaged.
        """
        thread_id = save.key.thread_id
        if error.key == "named" and save.new.checkpoint_id is not None:
            self._remember_id(save)
        if error.key == "named" and save.new.must_be_new:
            raise CheckpointExists(
                f"Thread {thread_id!r} has a checkpoint {save.checkpoint_id!r} already; nothing was saved."
            ) from None
        if error.key == "named" and not attempt.replaces:
            return replace(attempt, replaces=True)
        if error.key == "PRIMARY" and not attempt.row_restored:  # rows whose thread row is missing have the same keys
            version, ttl_us = os.urandom(16), self.context.ttl_us
            yield Batch.of(threads.RESTORE_ROW(self.context.sql, save.key, version=version, ttl_us=ttl_us))
            return replace(attempt.without_basis(), row_restored=True)
        raise SchemaMismatch(
            f"Thread {thread_id!r} cannot be saved to: {error}. Its rows are damaged; delete the thread."
        ) from None

    def _after_outdated(self, save: _Save, attempt: _Attempt) -> Operation[_Attempt]:
        """Return an attempt with another basis after the thread was found to be changed or deleted.

        Raises:
            Conflict: The precondition does not hold.
            ParentMissing: The named parent was deleted.
            Unavailable: Other processes wrote to the thread during every attempt.
        """
        new = save.new
        attempt = replace(attempt, refusals=attempt.refusals + 1)
        if save.precondition:
            yield from preconditions.check(self.context.sql, save.key, save.precondition)
            if attempt.refusals > _TRIES:
                raise Unavailable(
                    f"Thread {save.key.thread_id!r} was written to by others during every attempt; try again."
                ) from None
        if isinstance(new.parent, str):
            raise save.parent_missing from None
        if new.parent is ParentRule.REMEMBERED and attempt.basis.version is not None and not attempt.replaces:
            # Another process wrote to the thread: read the rows that the save builds on.
            return replace(attempt, basis=replace(attempt.basis, version=None))
        if new.parent is ParentRule.NEWEST and attempt.refusals <= _TRIES:
            after = yield from self.loading.refresh(save.key, attempt.before)
            # A damaged checkpoint must not prevent a save: the save then stores a whole state.
            basis = Basis(or_newest=True) if after is None else newest(after)
            return replace(attempt, basis=basis, before=after or attempt.before)
        return attempt.without_basis()  # the thread was deleted, or other processes wrote during every attempt

    def _transaction(self, save: _Save, attempt: _Attempt, row: NewRow, delta: Delta) -> _Transaction:
        """Return the batch that stores a row."""
        sql, key, basis = self.context.sql, save.key, attempt.basis
        take_values: dict[str, Any] = {"version": row.token, "ttl_us": self.context.ttl_us}
        guards = [*save.precondition.guards(sql, key)]
        if delta.parent is not None and basis.must_be_newest:
            guards.append(threads.NEWEST_HAS_TOKEN(sql, key, token=basis.lineage[0].token))
        if delta.parent is not None and basis.version is not None and not attempt.replaces:
            take = threads.TAKE_SEQ_IF_UNCHANGED(sql, key, known_version=basis.version, **take_values)
            insert = saving.INSERT_NEXT(sql, key, row, base_seq=None if delta.base is None else delta.base.seq)
            steps = [take, insert, *guards]
        else:
            if delta.parent is None:
                take = threads.TAKE_SEQ(sql, key, **take_values)
                clear_id, insert, *cleaning = self._whole(key, row, or_newest=basis.or_newest)
            else:
                if basis.or_newest and basis.version is not None:
                    take = threads.TAKE_SEQ_IF_UNCHANGED(sql, key, known_version=basis.version, **take_values)
                else:
                    take = threads.TAKE_SEQ_OF_LIVE(sql, key, **take_values)
                clear_id, insert, *cleaning = self._after_parent(key, row, delta.parent, delta.base)
            replaced = [removing.RECORD_NAMED(sql, key, row), clear_id] if attempt.replaces else []
            steps = [take, saving.GUARD_SAVE(sql, key, row), *guards, *replaced, insert, *cleaning]
        if attempt.replaces:
            steps += removing.remove_unneeded(sql, key)
        keep, prune = self.context.config.keep_checkpoints, None
        if keep is not None and not row.provisional:
            prune = removing.CLEAR_OLDER_IDS(sql, key, keep=keep)
            steps += [removing.RECORD_OLDER(sql, key, keep=keep), prune]
            steps += removing.remove_unneeded(sql, key)
        outcome_query = saving.FIND_SAVED(sql, key, checkpoint_id=row.checkpoint_id, token=row.token)
        batch = Batch(tuple(steps), outcome_query, lock=(sql.names["threads"], *key))
        return _Transaction(batch, outcome_query, take, insert, prune)

    def _whole(self, key: ThreadKey, row: NewRow, *, or_newest: bool) -> tuple[Statement, ...]:
        """Return the statements that store a row that builds on no other, in a thread that may be new or have expired.

        The first one clears the id of the checkpoint that it replaces.
        """
        sql, ttl_us = self.context.sql, self.context.ttl_us
        clear_id = removing.CLEAR_ID(sql, key, checkpoint_id=row.checkpoint_id)
        insert = (saving.INSERT_WHOLE_AFTER_NEWEST if or_newest else saving.INSERT_WHOLE)(sql, key, row)
        delete = removing.DELETE_LEFT_BEHIND(sql, key)
        if ttl_us is not None and ttl_us < RETENTION_S * 1_000_000:
            return clear_id, insert, removing.RECORD_LEFT_BEHIND(sql, key), delete
        return clear_id, insert, delete

    def _after_parent(
        self, key: ThreadKey, row: NewRow, parent: Ancestor, base: Ancestor | None
    ) -> tuple[Statement, Statement]:
        """Return the statements that store a row if its parent and its base still exist; the first as in `_whole`."""
        sql = self.context.sql
        pieces = saving.WITHOUT_BASE if base is None else saving.WITH_BASE
        tokens: dict[str, Any] = {"parent_token": parent.token}
        if base is not None:
            tokens |= {"base_seq": base.seq, "base_token": base.token}
        clear_id = saving.CLEAR_REPLACED_ID(sql, key, row, pieces=pieces, **tokens)
        return clear_id, saving.INSERT_AFTER(sql, key, row, pieces=pieces, **tokens)
