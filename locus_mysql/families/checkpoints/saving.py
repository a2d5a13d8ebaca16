"""Saving, loading and deleting checkpoints, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, cast
from uuid import uuid4

from ...dialect import Statement
from ...dialect.checkpoints.saving import NewRow
from ...dialect.template import KEPT_S
from ...drivers.interface import Row
from ...engine.operation import Batch, Duplicate, Operation, Outdated, Results
from ...errors import (
    CheckpointExists,
    Conflict,
    CorruptCheckpoint,
    InvalidInput,
    ParentMissing,
    SchemaMismatch,
    ThreadExists,
    TurnLost,
    Unavailable,
)
from ...runtime.arguments import (
    check_checkpoint_id,
    check_limit,
    check_thread_id,
    encode_metadata,
)
from ...runtime.stats import STATES
from .basis import Basis, newest, remembered
from .coding.codec import EncodedState
from .coding.delta import (
    Delta,
    Held,
    Lineage,
    NotHeld,
    assemble,
    encode_delta,
    extend,
    rows_needed,
)
from .coding.digests import HashedLogs, hash_logs
from .conditions import NO_CHECKPOINT, NOTHING_EXPECTED, Condition
from .maintenance import CleaningOperations
from .new import NewCheckpoint, ParentRule
from .rows import assemble_rows, chain_rows, row_of, rows_since
from .thread_cache import KeptState, Snapshot, ThreadKey

#: A checkpoint's state and the token of its row.
LoadedRow: TypeAlias = tuple[EncodedState, bytes]

#: How often a save under a condition is tried anew because the thread was written to meanwhile.
_TRIES = 10


class SavingOperations(CleaningOperations):
    """The operations on one thread."""

    def save(
        self, tenant: str, thread_id: str, new: NewCheckpoint, condition: Condition = NOTHING_EXPECTED
    ) -> Operation[str]:
        """Store a state as the newest checkpoint of its thread; returns its id.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            new: The state.
            condition: What the save relies on, beside the turn on the thread that the call is in, if it is in one.

        One round trip; another one if somebody else wrote to the thread since this process last saw it, if the row that
        the state would build on is gone by then, if the id of a provisional state exists already, and now and then for
        housekeeping. A named parent costs one more; a parent that is the newest checkpoint costs two more if somebody
        else wrote to the thread.

        Raises:
            Conflict: The thread's newest checkpoint is not the one that the condition names.
            TurnLost: The turn that the call is in is over.
            CheckpointExists: The id is taken, and must be new.
            ParentMissing: There is no checkpoint of the id that was named as the parent.
        """
        check_thread_id(thread_id)
        checkpoint_id = uuid4().hex if new.checkpoint_id is None else check_checkpoint_id(new.checkpoint_id)
        replaces = new.checkpoint_id is not None and not (new.provisional or new.must_be_new)
        metadata = encode_metadata(new.metadata)
        key = (tenant, thread_id)
        token = new.token or os.urandom(16)
        condition = self._in_turn(key, condition)
        tries = 0
        before = self.memory.snapshot(key)
        encoded = new.encode(before.state.memo if before.state else None)
        hashed = hash_logs(encoded.state, before.state.hashed if before.state else {})
        basis = yield from self._basis(key, new, before, hashed)
        adopted = sweep = False
        while True:
            delta = encode_delta(
                encoded.state,
                hashed,
                basis.lineage,
                token=token,
                provisional=new.provisional,
                compression=self.config.compression,
            )
            row = row_of(new, checkpoint_id, token, delta, metadata, search=self.config.search)
            try:
                results = yield self._save_batch(key, row, delta, condition, basis, replaces=replaces)
            except Duplicate as error:
                if error.key == "named" and new.must_be_new:
                    yield from self._settle(tenant, token)
                    raise CheckpointExists(
                        f"Thread {thread_id!r} has a checkpoint {checkpoint_id!r} already; nothing was saved."
                    ) from None
                if error.key == "named" and not replaces:
                    replaces = True
                elif error.key == "PRIMARY" and not adopted:  # rows without a thread's row are in the way
                    adopted, basis = True, Basis(or_newest=basis.or_newest)
                    yield Batch.of(self.sql.threads.adopt(tenant, thread_id, os.urandom(16), self.ttl_us))
                else:
                    raise SchemaMismatch(
                        f"Thread {thread_id!r} cannot be saved to: {error}. Its rows are damaged; delete the thread."
                    ) from None
                continue
            except Outdated as error:
                tries += 1
                if condition:
                    yield from self._check_condition(key, condition, token, error)
                    if tries > _TRIES:
                        raise Unavailable(f"Thread {thread_id!r} was written to all the time; try again.") from None
                if isinstance(new.parent, str):
                    yield from self._settle_late(error, tenant, token)
                    raise _parent_missing(thread_id, new.parent) from None
                if new.parent is ParentRule.REMEMBERED and basis.version is not None and not replaces:
                    # Somebody else wrote: what the save builds on must be looked for.
                    basis = replace(basis, version=None)
                elif new.parent is ParentRule.NEWEST and tries <= _TRIES:
                    before, basis = yield from self._catch_up(key, before)
                else:  # the thread is gone, or others are always faster
                    basis = Basis(or_newest=basis.or_newest)
                continue
            if self._prunes(row):  # whether or not a row was inserted; how many an earlier try pruned is not known
                sweep = sweep or results.landed is not None or results.named("prune").affected > 1
            if results.landed is not None and results.landed[0] is None:
                self.memory.forget(key, before)  # saved by an earlier try, and replaced, pruned or deleted since
                yield from self.housekeeping(tenant, thread_id, added_text=False, sweep=sweep)
                return checkpoint_id
            if results.landed is not None:
                seq = cast(int, results.landed[0])
            elif results.named("insert").affected:
                seq = results.named("take").last_insert_id
            elif isinstance(new.parent, str):
                raise _parent_missing(thread_id, new.parent)
            else:  # what it would build on is gone
                basis = Basis(or_newest=basis.or_newest)
                continue
            lineage = extend(basis.lineage, delta, seq, token, provisional=new.provisional)
            state = KeptState(encoded.state, hashed, encoded.memo, encoded.memo_bytes)
            self.memory.remember(key, before, before.after_save(lineage, state))
            yield from self.housekeeping(tenant, thread_id, added_text=row.search_text is not None, sweep=sweep)
            return checkpoint_id

    def _basis(self, key: ThreadKey, new: NewCheckpoint, before: Snapshot, hashed: HashedLogs) -> Operation[Basis]:
        """What a save builds on. No round trip, unless a parent is named.

        Raises:
            ParentMissing: There is no checkpoint of the id that was named.
        """
        if new.parent is ParentRule.REMEMBERED:
            return remembered(before, hashed, provisional=new.provisional)
        if new.parent is ParentRule.NEWEST:
            return newest(before)
        rows = yield from self._named_rows(*key, new.parent)
        if not rows:
            raise _parent_missing(key[1], new.parent)
        return Basis(assemble_rows(rows, key[1])[1])

    def _catch_up(self, key: ThreadKey, before: Snapshot) -> Operation[tuple[Snapshot, Basis]]:
        """What is known of a thread once its newest checkpoint was read, and that as what a save builds on."""
        try:
            held = before.held
            if held is None or (yield from self._load_since(*key, before, held)) is None:
                yield from self._load_newest(*key, before)
        except CorruptCheckpoint:  # what is saved now need not suffer from that: it builds on nothing
            return before, Basis(or_newest=True)
        after = self.memory.snapshot(key)
        return after, newest(after)

    def _save_batch(
        self, key: ThreadKey, row: NewRow, delta: Delta, condition: Condition, basis: Basis, *, replaces: bool
    ) -> Batch:
        """The transaction of a save."""
        tenant, thread_id = key
        threads, checkpoints, ledger = self.sql.threads, self.sql.checkpoints, self.sql.ledger
        parent, base = delta.parent, delta.base
        landed = checkpoints.find_saved(tenant, thread_id, row.checkpoint_id, row.token)
        retire = checkpoints.retire_unnamed(tenant, thread_id)
        conditions = tuple(condition.guards(self.sql, key))
        if parent is not None and basis.must_be_newest:
            conditions += (self.sql.turns.newest_has_token(*key, basis.lineage[0].token),)
        steps: list[Statement | tuple[Statement, ...]] = []
        named: dict[str, Statement] = {}
        if parent is not None and basis.version is not None and not replaces:
            take = threads.take_seq_if_unchanged(tenant, thread_id, row.token, self.ttl_us, basis.version)
            insert = checkpoints.insert_next(tenant, thread_id, row, None if base is None else base.seq)
            steps += [take, insert, conditions]
        elif parent is not None:
            parent_key = (parent.seq, parent.token)
            base_key = None if base is None else (base.seq, base.token)
            if basis.or_newest and basis.version is not None:
                take = threads.take_seq_if_unchanged(tenant, thread_id, row.token, self.ttl_us, basis.version)
            else:
                take = threads.take_seq_of_live(tenant, thread_id, row.token, self.ttl_us)
            insert = checkpoints.insert_after(tenant, thread_id, row, parent_key, base_key)
            steps += [take, threads.guard(landed), conditions]
            if replaces:
                steps.append(ledger.settle_named(tenant, thread_id, row.checkpoint_id))
                steps.append(checkpoints.unname_for(tenant, thread_id, row.checkpoint_id, parent_key, base_key))
            steps.append(insert)
        else:
            take = threads.take_seq(tenant, thread_id, row.token, self.ttl_us)
            if basis.or_newest:
                insert = checkpoints.insert_whole_after_newest(tenant, thread_id, row)
            else:
                insert = checkpoints.insert_whole(tenant, thread_id, row)
            steps += [take, threads.guard(landed), conditions]
            if replaces:
                steps.append(ledger.settle_named(tenant, thread_id, row.checkpoint_id))
                steps.append(checkpoints.unname(tenant, thread_id, row.checkpoint_id))
            steps.append(insert)
            if self.ttl_us is not None and self.ttl_us < KEPT_S * 1_000_000:
                steps.append(ledger.settle_left_behind(tenant, thread_id))
            steps.append(checkpoints.delete_left_behind(tenant, thread_id))
        if replaces:
            steps.append(retire)
        if self._prunes(row):
            keep = cast(int, self.config.keep_checkpoints)
            named["prune"] = checkpoints.unname_older(tenant, thread_id, keep)
            steps += [ledger.settle_older(tenant, thread_id, keep), named["prune"], retire]
        return Batch.named(*steps, landed=landed, take=take, insert=insert, **named)

    def _in_turn(self, key: ThreadKey, condition: Condition = NOTHING_EXPECTED) -> Condition:
        """A condition, and that the turn on the thread that the call is in is held, if it is in one."""
        lease = self.turns.of(key)
        if lease is None:
            return condition
        lease.check()
        return replace(condition, lease=lease)

    def _check_condition(
        self, key: ThreadKey, condition: Condition, token: bytes, undone: Outdated | Results
    ) -> Operation[None]:
        """After a write was undone, raise what its condition says, if that was the reason.

        Its token is settled then, so that a copy of its packet that arrives late does nothing either.

        Raises:
            Conflict: The thread's newest checkpoint is not the one that the condition names.
            TurnLost: The turn is over.
        """
        problem = yield from self._broken(key, condition)
        if problem is not None:
            yield from self._settle_late(undone, key[0], token)
            raise problem

    def _broken(self, key: ThreadKey, condition: Condition) -> Operation[Conflict | TurnLost | None]:
        """The error that says in what a condition does not hold; None if it holds."""
        turns, lease = self.sql.turns, condition.lease
        expected = condition.newest_token
        known = expected if isinstance(expected, bytes) else b""
        found, named, whose = yield Batch.of(
            turns.newest(*key), turns.name_of(*key, known), turns.whose(*key, b"" if lease is None else lease.token)
        )
        newest_id, newest_token = found.rows[0] if found.rows else (None, None)
        if condition.newest_id is not None:
            wanted = None if condition.newest_id is NO_CHECKPOINT else condition.newest_id
            if newest_id != wanted:
                return Conflict(key[1], wanted, cast("str | None", newest_id))
        if expected is not None and newest_token != (None if expected is NO_CHECKPOINT else expected):
            name = cast("str | None", named.rows[0][0]) if named.rows else None
            return Conflict(key[1], name, cast("str | None", newest_id))
        if lease is not None:
            mine, left_us = whose.rows[0] if whose.rows else (0, 0)
            if not mine or left_us is None or cast(int, left_us) <= 0:
                lease.lost = True
                return TurnLost(key[1], "it was not renewed in time, or the thread was deleted")
        return None

    def _prunes(self, row: NewRow) -> bool:
        """Whether a save of this row takes the names from older checkpoints."""
        return self.config.keep_checkpoints is not None and not row.provisional

    def load(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[EncodedState | None]:
        """A checkpoint's state, or the newest; None if there is none.

        One round trip; a second one if another process, for the first time, wrote to a thread whose newest checkpoint
        this process knew; if the newest checkpoint was deleted; or if the state builds on more rows than one statement
        reads.
        """
        found = yield from self.load_row(tenant, thread_id, checkpoint_id)
        return None if found is None else found[0]

    def load_row(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[LoadedRow | None]:
        """As `load`, with the token of the checkpoint's row."""
        check_thread_id(thread_id)
        before = self.memory.snapshot((tenant, thread_id))
        if checkpoint_id is None:
            known = yield from self._load_newest_known(tenant, thread_id, before)
            self.counters.look_up(STATES, hit=known is not None and before.held is not None)
            return known or (yield from self._load_newest(tenant, thread_id, before))
        rows = yield from self._named_rows(tenant, thread_id, checkpoint_id)
        if not rows:
            return None
        state, lineage = assemble_rows(rows, thread_id)
        self.memory.remember((tenant, thread_id), before, before.after_loading(lineage, _version(rows)))
        return state, lineage[0].token

    def _named_rows(self, tenant: str, thread_id: str, checkpoint_id: str) -> Operation[Sequence[Row]]:
        """A checkpoint's row and those it builds on; none if it is not there."""
        (found,) = yield Batch.of(self.sql.loading.named(tenant, thread_id, check_checkpoint_id(checkpoint_id)))
        rows: Sequence[Row] | None = chain_rows(found.rows[0]) if found.rows else ()
        return (yield from self._read_all(tenant, thread_id, checkpoint_id)) if rows is None else rows

    def newest_token(self, tenant: str, thread_id: str) -> Operation[bytes | None]:
        """The token of a thread's newest checkpoint; None if there is none. One round trip."""
        (found,) = yield Batch.of(self.sql.turns.newest(tenant, thread_id))
        return cast(bytes, found.rows[0][1]) if found.rows else None

    def _load_newest(self, tenant: str, thread_id: str, before: Snapshot) -> Operation[LoadedRow | None]:
        """The newest state, whatever this process knows of the thread."""
        (found,) = yield Batch.of(self.sql.loading.newest(tenant, thread_id))
        rows: Sequence[Row] | None = chain_rows(found.rows[0]) if found.rows else ()
        if rows is None:
            rows = yield from self._read_all(tenant, thread_id, None)
        if not rows:
            self.memory.forget((tenant, thread_id), before)
            return None
        state, lineage = assemble_rows(rows, thread_id)
        self._remember_newest(tenant, thread_id, before, state, lineage, _version(rows))
        return state, lineage[0].token

    def _load_since(self, tenant: str, thread_id: str, before: Snapshot, held: Held) -> Operation[LoadedRow | None]:
        """The newest state, if it builds on what this process has."""
        (found,) = yield Batch.of(self.sql.loading.since(tenant, thread_id, held.lineage[0].seq))
        try:
            state, lineage = assemble(rows_since(found.rows, held), thread_id, held)
        except NotHeld:
            return None
        self._remember_newest(tenant, thread_id, before, state, lineage, cast(bytes, found.rows[0][0]))
        return state, lineage[0].token

    def _read_all(self, tenant: str, thread_id: str, checkpoint_id: str | None) -> Operation[Sequence[Row]]:
        """A checkpoint's rows, or the newest's, however many, where the statement that reads a few does not do."""
        (found,) = yield Batch.of(self.sql.loading.all_rows(tenant, thread_id, checkpoint_id))
        return found.rows

    def _load_newest_known(self, tenant: str, thread_id: str, before: Snapshot) -> Operation[LoadedRow | None]:
        """The newest state, if what this process knows of the thread is enough to tell it."""
        version, lineage, held = before.version, before.newest, before.held
        if version is None or not lineage:
            return None
        if self.memory.is_shared(before):
            return None if held is None else (yield from self._load_since(tenant, thread_id, before, held))
        if held is not None:
            (found,) = yield Batch.of(self.sql.threads.unchanged(tenant, thread_id, version))
            return (held.state, lineage[0].token) if found.rows else None
        rows = rows_needed(lineage)
        seqs = [ancestor.seq for ancestor in rows]
        (found,) = yield Batch.of(self.sql.loading.rows(tenant, thread_id, version, seqs))
        if len(found.rows) != len(seqs):
            return None
        payloads = [cast(bytes, row[0]) for row in found.rows]
        stored = [(row.seq, row.token, payload) for row, payload in zip(rows, payloads, strict=True)]
        state, _ = assemble_rows(stored, thread_id)
        self._remember_newest(tenant, thread_id, before, state, lineage, version)
        return state, lineage[0].token

    def _remember_newest(
        self, tenant: str, thread_id: str, before: Snapshot, state: EncodedState, lineage: Lineage, version: bytes
    ) -> None:
        kept = KeptState(state, hash_logs(state, before.state.hashed if before.state else {}))
        self.memory.remember((tenant, thread_id), before, before.after_loading_newest(lineage, version, kept))

    def exists(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Whether the checkpoint, or any of the thread, is there. One round trip."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        (found,) = yield Batch.of(self.sql.checkpoints.exists(tenant, thread_id, checkpoint_id))
        return bool(found.rows)

    def delete(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a thread; True if there was one. One round trip.

        A turn on the thread that the call is in goes on; the turn of somebody else is lost with the thread. States that
        build on a deleted checkpoint stay whole. A thread that has expired is deleted as well, but the answer is False.
        """
        check_thread_id(thread_id)
        if checkpoint_id is None:
            return (yield from self._delete_thread(tenant, thread_id))
        return (yield from self._delete_checkpoint(tenant, thread_id, check_checkpoint_id(checkpoint_id)))

    def _delete_thread(self, tenant: str, thread_id: str) -> Operation[bool]:
        threads, ledger = self.sql.threads, self.sql.ledger
        token, token_if_expired = os.urandom(16), os.urandom(16)
        lock = threads.lock_any(tenant, thread_id, token)
        landed = ledger.find_either(tenant, token, token_if_expired)
        key = (tenant, thread_id)
        condition = self._in_turn(key)
        try:
            results = yield Batch.named(
                lock,
                threads.guard(landed),
                tuple(condition.guards(self.sql, key)),
                ledger.settle_rows(tenant, thread_id),
                ledger.settle_either(tenant, token, token_if_expired),
                self.sql.checkpoints.delete_all(tenant, thread_id),
                self.sql.turns.keep_lease(*key) if condition else threads.drop(*key),
                landed=landed,
                lock=lock,
            )
        except Outdated as error:
            yield from self._settle_late(error, tenant, token)
            if condition:
                yield from self._check_condition(key, condition, token, error)
            return False
        finally:
            self.memory.forget(key)
        return results.landed[0] == 1 if results.landed else results.named("lock").last_insert_id == 1

    def _delete_checkpoint(self, tenant: str, thread_id: str, checkpoint_id: str) -> Operation[bool]:
        threads, checkpoints, token = self.sql.threads, self.sql.checkpoints, os.urandom(16)
        key = (tenant, thread_id)
        condition = self._in_turn(key)
        before = self.memory.snapshot(key)
        lock = threads.lock(tenant, thread_id, token, before.version or b"")
        unname = checkpoints.unname(tenant, thread_id, checkpoint_id)
        landed = self.sql.ledger.find(tenant, token)
        try:
            results = yield Batch.named(
                lock,
                threads.guard(landed),
                tuple(condition.guards(self.sql, key)),
                self.sql.ledger.settle_deleted(tenant, thread_id, checkpoint_id, token),
                unname,
                checkpoints.retire_unnamed(tenant, thread_id),
                self.sql.turns.keep_lease_if_empty(*key) if condition else threads.drop_if_empty(*key),
                landed=landed,
                lock=lock,
                unname=unname,
            )
        except Outdated as error:
            yield from self._settle_late(error, tenant, token)
            if condition:
                yield from self._check_condition(key, condition, token, error)
            self.memory.forget(key, before)
            return False
        if results.landed is not None:
            self.memory.forget(key)
            return True
        unnamed = results.named("unname")
        if not unnamed.affected:
            yield from self._settle_late(results, tenant, token)
        version = token if results.named("lock").last_insert_id == 1 else None
        self.memory.delete_checkpoint(key, before, unnamed.last_insert_id if unnamed.affected else None, version)
        return unnamed.affected > 0

    def _settle_late(self, outcome: Duplicate | Outdated | Results, tenant: str, token: bytes) -> Operation[None]:
        """After a write that found nothing to do: make sure that a first try which arrives late does nothing either."""
        if outcome.fate_unknown:
            yield from self._settle(tenant, token)

    def _settle(self, tenant: str, token: bytes) -> Operation[None]:
        """Make sure that what has this token is not carried out from now on."""
        yield Batch((self.sql.ledger.settle(tenant, token),), self.sql.ledger.find(tenant, token))

    def list_checkpoints(self, tenant: str, thread_id: str, limit: int = 10) -> Operation[list[str]]:
        """Ids of a thread's checkpoints, newest first. One round trip."""
        check_thread_id(thread_id)
        (found,) = yield Batch.of(self.sql.checkpoints.list_ids(tenant, thread_id, check_limit(limit)))
        return [cast(str, row[0]) for row in found.rows]

    def copy_thread(self, tenant: str, source: str, destination: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints; False if there is none. One round trip; states stay on the server.

        Raises:
            ThreadExists: The destination has checkpoints. Nothing was changed.
        """
        check_thread_id(source)
        check_thread_id(destination)
        if source == destination:
            raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
        token = os.urandom(16)
        landed = self.sql.ledger.find(tenant, token)
        try:
            yield Batch.named(
                self.sql.maintenance.copy_thread(tenant, source, destination, self.ttl_us, landed),
                self.sql.ledger.settle(tenant, token),
                landed=landed,
            )
        except Duplicate as error:
            yield from self._settle_late(error, tenant, token)
            if error.table == self.sql.names["checkpoints"]:  # rows without a thread's row: now they have one
                yield Batch.of(self.sql.threads.adopt(tenant, destination, os.urandom(16), self.ttl_us))
            raise ThreadExists(
                f"Thread {destination!r} has checkpoints already; delete it first or copy to another id."
            ) from None
        except Outdated as error:
            yield from self._settle_late(error, tenant, token)
            return False
        finally:
            self.memory.forget((tenant, destination))
        return True


def _parent_missing(thread_id: str, parent_id: str) -> ParentMissing:
    return ParentMissing(
        f"Thread {thread_id!r} has no checkpoint {parent_id!r} to go on from; nothing was saved. Name one that is "
        "there, or none, to go on from the newest."
    )


def _version(rows: Sequence[Row]) -> bytes:
    """The thread's version when these rows were read."""
    return cast(bytes, rows[0][3])
