"""Saving checkpoints, as a generator that does no I/O: `Saving`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias
from uuid import uuid4

from ...dialect import Query, Statement
from ...dialect.checkpoints.saving import NewRow, Saved
from ...dialect.ledger import RETENTION_S
from ...engine.operation import Batch, Duplicate, Operation, Outdated, Results
from ...engine.retry import Backoff
from ...errors import CheckpointExists, ParentMissing, SchemaMismatch, Unavailable
from ...runtime.arguments import check_checkpoint_id, check_thread_id, encode_metadata
from .coding.delta import Ancestor, Delta, Lineage, encode_delta, extend, lasting
from .coding.digests import HashedLogs, hash_logs
from .context import Context
from .loading import Loading
from .maintenance import ThreadMaintenance
from .new_checkpoint import NewCheckpoint, ParentRule
from .preconditions import NOTHING_EXPECTED, Precondition, Preconditions
from .state_rows import assemble_rows, row_of
from .thread_cache import CachedState, Snapshot, ThreadKey

#: A save with a precondition is repeated at most this many times because the thread was written to meanwhile.
_TRIES = 10

#: Statements of a batch; those that belong together as a tuple.
_Statements: TypeAlias = Iterable[Statement | tuple[Statement, ...]]


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
    known = lineage if provisional else lasting(lineage)
    return Basis(lineage, before.version, or_newest=not known)


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


class Saving:
    """Saves checkpoints.

    Args:
        context: The objects shared by the store's operations.
        loading: Loads the states that a save builds on.
        maintenance: Cleans up after a save.
        preconditions: Checks the preconditions of a save.
    """

    def __init__(
        self, context: Context, loading: Loading, maintenance: ThreadMaintenance, preconditions: Preconditions
    ) -> None:
        self.context = context
        self.loading = loading
        self.maintenance = maintenance
        self.preconditions = preconditions

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
            precondition: The conditions of the save. The call's turn on the thread, if any, is added to them.

        Raises:
            Conflict: The thread's newest checkpoint is not the one that the precondition names.
            TurnLost: The call's turn is over.
            CheckpointExists: The id is taken, and must be new.
            ParentMissing: There is no checkpoint of the id that was named as the parent.
        """
        check_thread_id(thread_id)
        save = _Save(self, (tenant, thread_id), new, precondition)
        yield from save.choose_basis()
        backoff: Backoff | None = None
        while not (yield from save.attempt()):
            backoff = backoff or Backoff(f"Other writers changed thread {thread_id!r} before a state was saved to it")
            backoff.check()
        yield from self.maintenance.after_save(tenant, thread_id, added_text=save.added_text, sweep=save.pruned_several)
        return save.checkpoint_id


class _Transaction(NamedTuple):
    """The batch of a save, and the statements whose results are evaluated."""

    batch: Batch
    outcome_query: Query[Saved]
    take: Statement
    insert: Statement
    prune: Statement | None


class _Save:
    """One save: its input, and the state that each attempt updates.

    Args:
        saving: The operations.
        key: The thread.
        new: What to save.
        precondition: The conditions of the save.
    """

    def __init__(self, saving: Saving, key: ThreadKey, new: NewCheckpoint, precondition: Precondition) -> None:
        context = saving.context
        self._saving, self._context, self._sql = saving, context, context.sql
        self._key, self._new = key, new
        self._sealing = context.sealing.of(*key)
        self.checkpoint_id = uuid4().hex if new.checkpoint_id is None else check_checkpoint_id(new.checkpoint_id)
        self._metadata = (None, None) if new.metadata is None else encode_metadata(new.metadata)
        self._token = new.token or os.urandom(16)
        self._precondition = saving.preconditions.in_turn(key, precondition)
        self._before = context.cache.snapshot(key)
        state = self._before.state
        self._encoded = new.encode(state.memo if state else None)
        self._hashed = hash_logs(self._encoded.state, state.hashed if state else {})
        self._basis = Basis()
        #: Whether a checkpoint of this id is replaced. An id that this process did not save is taken to be new until
        #: the server refuses it: replacing takes seven statements instead of two.
        named = new.checkpoint_id is not None and not new.must_be_new
        self._replaces = named and context.known_ids.get((key, new.checkpoint_id)) is not None
        #: Whether a missing thread row was restored.
        self._row_restored = False
        self._refusals = 0
        #: Whether text was stored that is not yet indexed.
        self.added_text = False
        #: Whether the ids of several older checkpoints were cleared, so that the thread needs a sweep.
        self.pruned_several = False

    def choose_basis(self) -> Operation[None]:
        """Choose the basis of the first attempt. No round trip, unless a parent is named.

        Raises:
            ParentMissing: There is no checkpoint of the id that was named.
        """
        new = self._new
        if new.parent is ParentRule.REMEMBERED:
            self._basis = remembered(self._before, self._hashed, provisional=new.provisional)
        elif new.parent is ParentRule.NEWEST:
            self._basis = newest(self._before)
        else:
            rows = yield from self._saving.loading.named_rows(*self._key, new.parent)
            if not rows:
                raise self._parent_missing()
            self._basis = Basis(assemble_rows(rows, self._key[1], self._sealing)[1])

    def attempt(self) -> Operation[bool]:
        """Send the save once. Return whether it is complete; if not, the next attempt is prepared."""
        delta = encode_delta(
            self._encoded.state,
            self._hashed,
            self._basis.lineage,
            provisional=self._new.provisional,
            compression=self._context.config.compression,
            held={} if self._before.state is None else self._before.state.hashed,
        )
        search = self._context.config.search
        row = row_of(self._new, self.checkpoint_id, self._token, delta, self._metadata, self._sealing, search=search)
        transaction = self._transaction(row, delta)
        try:
            results = yield transaction.batch
        except Duplicate as error:
            yield from self._after_duplicate(error)
            return False
        except Outdated:
            yield from self._after_outdated()
            return False
        return self._complete(row, delta, transaction, results)

    def _complete(self, row: NewRow, delta: Delta, transaction: _Transaction, results: Results) -> bool:
        """Cache the saved state. Return False if no row was inserted because the basis was removed."""
        cache = self._context.cache
        if self._new.checkpoint_id is not None and not (self._new.provisional or self._new.must_be_new):
            self._remember_id()
        if transaction.prune is not None:  # the number of ids that an earlier attempt cleared is not known
            self.pruned_several |= results.earlier_attempt is not None or results.of(transaction.prune).affected > 1
        if results.earlier_attempt is not None:
            (saved,) = results.rows(transaction.outcome_query)
            seq = saved.seq
        elif results.of(transaction.insert).affected:
            seq = results.of(transaction.take).last_insert_id
        elif isinstance(self._new.parent, str):
            raise self._parent_missing()
        else:
            self._basis = Basis(or_newest=self._basis.or_newest)
            return False
        if seq is None:  # an earlier attempt saved the row, which was replaced, pruned or deleted since
            cache.forget(self._key, self._before)
            return True
        lineage = extend(self._basis.lineage, delta, seq, self._token, provisional=self._new.provisional)
        encoded = self._encoded
        state = CachedState(encoded.state, self._hashed, encoded.memo, encoded.memo_bytes, self.checkpoint_id)
        cache.remember(self._key, self._before, self._before.after_save(lineage, state))
        self.added_text = row.search_text is not None
        return True

    def _after_duplicate(self, error: Duplicate) -> Operation[None]:
        """Prepare another attempt after a duplicate key error.

        Raises:
            CheckpointExists: The id is taken, and must be new.
            SchemaMismatch: The rows of the thread are damaged.
        """
        thread_id = self._key[1]
        if error.key == "named" and self._new.checkpoint_id is not None:
            self._remember_id()
        if error.key == "named" and self._new.must_be_new:
            raise CheckpointExists(
                f"Thread {thread_id!r} has a checkpoint {self.checkpoint_id!r} already; nothing was saved."
            ) from None
        if error.key == "named" and not self._replaces:
            self._replaces = True
        elif error.key == "PRIMARY" and not self._row_restored:  # rows whose thread row is missing have the same keys
            self._row_restored = True
            self._basis = Basis(or_newest=self._basis.or_newest)
            yield Batch.of(self._sql.threads.restore_row(*self._key, os.urandom(16), self._context.ttl_us))
        else:
            raise SchemaMismatch(
                f"Thread {thread_id!r} cannot be saved to: {error}. Its rows are damaged; delete the thread."
            ) from None

    def _after_outdated(self) -> Operation[None]:
        """Choose another basis after the thread was found to be changed or deleted.

        Raises:
            Conflict, TurnLost: The precondition does not hold.
            ParentMissing: The named parent was deleted.
            Unavailable: Other processes wrote to the thread during every attempt.
        """
        new, basis = self._new, self._basis
        self._refusals += 1
        if self._precondition:
            yield from self._saving.preconditions.check(self._key, self._precondition)
            if self._refusals > _TRIES:
                raise Unavailable(
                    f"Thread {self._key[1]!r} was written to by others during every attempt; try again."
                ) from None
        if isinstance(new.parent, str):
            raise self._parent_missing() from None
        if new.parent is ParentRule.REMEMBERED and basis.version is not None and not self._replaces:
            # Another process wrote to the thread: read the rows that the save builds on.
            self._basis = replace(basis, version=None)
        elif new.parent is ParentRule.NEWEST and self._refusals <= _TRIES:
            after = yield from self._saving.loading.refresh(self._key, self._before)
            # A damaged checkpoint must not prevent a save: the save then stores a whole state.
            self._basis = Basis(or_newest=True) if after is None else newest(after)
            self._before = after or self._before
        else:  # the thread was deleted, or other processes wrote during every attempt
            self._basis = Basis(or_newest=basis.or_newest)

    def _transaction(self, row: NewRow, delta: Delta) -> _Transaction:
        """Return the batch that stores a row."""
        sql, key = self._sql, self._key
        outcome_query = sql.checkpoints.find_saved(*key, row.checkpoint_id, row.token)
        guards = tuple(self._precondition.guards(sql, key))
        if delta.parent is not None and self._basis.must_be_newest:
            guards += (sql.turns.newest_has_token(*key, self._basis.lineage[0].token),)
        if delta.parent is None:
            take, insert, steps = self._whole(row, (sql.threads.guard(outcome_query), guards))
        elif self._basis.version is not None and not self._replaces:
            take = sql.threads.take_seq_if_unchanged(*key, row.token, self._context.ttl_us, self._basis.version)
            insert = sql.checkpoints.insert_next(*key, row, None if delta.base is None else delta.base.seq)
            steps = (take, insert, guards)
        else:
            take, insert, steps = self._after_parent(
                row, delta.parent, delta.base, (sql.threads.guard(outcome_query), guards)
            )
        remove = sql.checkpoints.remove_unneeded(*key) if self._replaces else ()
        prune, pruning = self._pruning(row)
        batch = Batch.of(*steps, remove, *pruning, outcome_query=outcome_query, lock=(sql.names["threads"], *key))
        return _Transaction(batch, outcome_query, take, insert, prune)

    def _whole(self, row: NewRow, guards: _Statements) -> tuple[Statement, Statement, _Statements]:
        """Store a row that builds on no other, in a thread that may be new or have expired."""
        sql, key, ttl_us = self._sql, self._key, self._context.ttl_us
        take = sql.threads.take_seq(*key, row.token, ttl_us)
        after_newest = self._basis.or_newest
        insert = (sql.checkpoints.insert_whole_after_newest if after_newest else sql.checkpoints.insert_whole)(
            *key, row
        )
        steps = [take, *guards]
        if self._replaces:
            name = row.checkpoint_id
            steps += [sql.ledger.record_named(*key, name), sql.checkpoints.clear_id(*key, name)]
        steps.append(insert)
        if ttl_us is not None and ttl_us < RETENTION_S * 1_000_000:
            steps.append(sql.ledger.record_left_behind(*key))
        return take, insert, [*steps, sql.checkpoints.delete_left_behind(*key)]

    def _after_parent(
        self, row: NewRow, parent: Ancestor, base: Ancestor | None, guards: _Statements
    ) -> tuple[Statement, Statement, _Statements]:
        """Store a row if its parent and its base still exist."""
        sql, key, basis = self._sql, self._key, self._basis
        parent_key = (parent.seq, parent.token)
        base_key = None if base is None else (base.seq, base.token)
        if basis.or_newest and basis.version is not None:
            take = sql.threads.take_seq_if_unchanged(*key, row.token, self._context.ttl_us, basis.version)
        else:
            take = sql.threads.take_seq_of_live(*key, row.token, self._context.ttl_us)
        insert = sql.checkpoints.insert_after(*key, row, parent_key, base_key)
        steps = [take, *guards]
        if self._replaces:
            name = row.checkpoint_id
            steps.append(sql.ledger.record_named(*key, name))
            steps.append(sql.checkpoints.clear_id_for(*key, name, parent_key, base_key))
        return take, insert, [*steps, insert]

    def _pruning(self, row: NewRow) -> tuple[Statement | None, _Statements]:
        """Return the statements that clear the ids of checkpoints beyond keep_checkpoints; none if provisional."""
        sql, key, keep = self._sql, self._key, self._context.config.keep_checkpoints
        if keep is None or row.provisional:
            return None, ()
        prune = sql.checkpoints.clear_older_ids(*key, keep)
        return prune, (sql.ledger.record_older(*key, keep), prune, sql.checkpoints.remove_unneeded(*key))

    def _remember_id(self) -> None:
        """Let the next save of this id replace its checkpoint at once."""
        self._context.known_ids.put((self._key, self.checkpoint_id), True)

    def _parent_missing(self) -> ParentMissing:
        return ParentMissing(
            f"Thread {self._key[1]!r} has no checkpoint {self._new.parent!r} to continue; nothing was saved. Name an "
            "existing parent, or none to continue the newest checkpoint."
        )
