"""Saving, loading and deleting checkpoints, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast
from uuid import uuid4

from ..dialect import Statement
from ..dialect.checkpoints import NewRow
from ..drivers.base import Result
from ..engine.operation import Batch, Duplicate, Operation, Outdated
from ..errors import InvalidInput, ThreadExists
from .arguments import check_checkpoint_id, check_limit, check_thread_id, encode_metadata
from .base import RecentState
from .cleaning import CleaningOperations
from .codec import EncodedState
from .delta import Delta, Lineage, StoredRow, assemble, encode_delta, extend, rows_needed
from .new import NewCheckpoint
from .rows import assemble_rows


class SavingOperations(CleaningOperations):
    """What is done to one thread."""

    def save(self, tenant: str, thread_id: str, new: NewCheckpoint) -> Operation[str]:
        """Store a state as the newest checkpoint of its thread; returns its id.

        One round trip. Another one if somebody else wrote to the thread since this process knew it; if then the row it
        would build on is gone; if the id of a provisional state exists; and now and then for housekeeping.
        """
        check_thread_id(thread_id)
        checkpoint_id = uuid4().hex if new.checkpoint_id is None else check_checkpoint_id(new.checkpoint_id)
        replaces = new.checkpoint_id is not None and not new.provisional
        metadata, metadata_keys = encode_metadata(new.metadata)
        key = (tenant, thread_id)
        token = os.urandom(16)
        hashed = self.hashed(key, new.state)
        lineage = self.known.lineage_for(key, hashed)
        known_version = None if replaces else self.known.version(key)
        while True:
            delta = encode_delta(
                new.state,
                hashed,
                lineage,
                token=token,
                provisional=new.provisional,
                compression=self.config.compression,
            )
            text, continues = new.search_text(delta) if self.config.search and not new.provisional else ("", False)
            row = NewRow(
                checkpoint_id=checkpoint_id,
                token=token,
                payload=delta.payload,
                parent_seq=delta.parent.seq if delta.parent else None,
                continues=continues,
                provisional=new.provisional,
                metadata=metadata,
                metadata_keys=metadata_keys,
                search_text=text or None,
                oldest_at=new.oldest_at,
            )
            batch = self._save_batch(tenant, thread_id, row, delta, replaces=replaces, known_version=known_version)
            try:
                results = yield batch
            except Duplicate:
                if replaces:
                    raise
                replaces, known_version = True, None
                continue
            except Outdated:  # somebody else wrote to the thread: what the save builds on must be looked for
                known_version = None
                continue
            seq = _stored_seq(results, inserted_at=2 if replaces else 1)
            if seq is not None:
                self.known.saved(key, extend(lineage, delta, seq, token, provisional=new.provisional))
                self.keep(key, RecentState(token, new.state, hashed))
                if self._pruned_several(tenant, thread_id, batch, results):
                    yield from self.sweep(tenant, thread_id)
                yield from self.housekeeping(added_text=bool(text))
                return checkpoint_id
            self.known.forget(key)
            lineage = ()

    def _save_batch(
        self, tenant: str, thread_id: str, row: NewRow, delta: Delta, *, replaces: bool, known_version: bytes | None
    ) -> Batch:
        """The transaction of a save. Its second statement inserts; its third does if it may replace a checkpoint."""
        threads, checkpoints, parent, base = self.sql.threads, self.sql.checkpoints, delta.parent, delta.base
        statements: list[Statement] = []
        take = (tenant, thread_id, row.token, self.ttl_us)
        if parent is not None and known_version is not None:
            statements.append(threads.take_seq_if_unchanged(*take, known_version))
            statements.append(checkpoints.insert_next(tenant, thread_id, row, None if base is None else base.seq))
        elif parent is not None:
            parent_key = (parent.seq, parent.token)
            base_key = None if base is None else (base.seq, base.token)
            statements.append(threads.take_seq_of_live(*take))
            if replaces:
                statements.append(checkpoints.unname_for(tenant, thread_id, row.checkpoint_id, parent_key, base_key))
            statements.append(checkpoints.insert_after(tenant, thread_id, row, parent_key, base_key))
        else:
            statements.append(threads.take_seq(*take))
            if replaces:
                statements.append(checkpoints.unname(tenant, thread_id, row.checkpoint_id))
            statements.append(checkpoints.insert_whole(tenant, thread_id, row))
            statements.append(checkpoints.delete_left_behind(tenant, thread_id))
        if replaces:
            statements.extend(checkpoints.retire_unnamed(tenant, thread_id))
        if self.config.keep_checkpoints is not None and not row.provisional:
            retire = checkpoints.retire_unnamed(tenant, thread_id)
            statements += [checkpoints.unname_older(tenant, thread_id, self.config.keep_checkpoints), *retire]
        landed = checkpoints.find_saved(tenant, thread_id, row.checkpoint_id, row.token)
        return Batch(tuple(statements), landed)

    def _pruned_several(self, tenant: str, thread_id: str, batch: Batch, results: Sequence[Result]) -> bool:
        """Whether more checkpoints lost their names than the one whose row the batch itself retires."""
        if self.config.keep_checkpoints is None or len(results) == 1:
            return False
        pruning = self.sql.checkpoints.unname_older(tenant, thread_id, self.config.keep_checkpoints)
        return pruning in batch.statements and results[batch.statements.index(pruning)].affected > 1

    def load(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[EncodedState | None]:
        """A checkpoint's state, or the newest; None if there is none.

        One round trip; a second one if another process wrote to a thread whose newest checkpoint this process knew.
        """
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        else:
            state = yield from self._load_newest_known(tenant, thread_id)
            if state is not None:
                return state
        (found,) = yield Batch.of(self.sql.checkpoints.load(tenant, thread_id, checkpoint_id))
        if not found.rows:
            return None
        state, lineage = assemble_rows(found.rows, thread_id)
        if checkpoint_id is None:
            self._loaded_newest((tenant, thread_id), state, lineage, cast(bytes, found.rows[0][3]))
        else:
            self.known.loaded((tenant, thread_id), lineage, version=None)
        return state

    def _load_newest_known(self, tenant: str, thread_id: str) -> Operation[EncodedState | None]:
        """The newest state, if this process has it or knows its rows, and nobody wrote to the thread since."""
        key = (tenant, thread_id)
        lineage, version = self.known.newest(key)
        if version is None:
            return None
        recent = self.recent.get(key)
        if recent is not None and recent.token == lineage[0].token:
            (found,) = yield Batch.of(self.sql.threads.unchanged(tenant, thread_id, version))
            if not found.rows:
                return None
            self.known.loaded(key, lineage, version=version)
            return recent.encoded
        rows = rows_needed(lineage)
        seqs = [ancestor.seq for ancestor in rows]
        (found,) = yield Batch.of(self.sql.checkpoints.load_rows(tenant, thread_id, version, seqs))
        if len(found.rows) < len(seqs):
            return None
        payloads = [cast(bytes, row[0]) for row in found.rows]
        stored = [StoredRow(row.seq, row.token, payload) for row, payload in zip(rows, payloads, strict=True)]
        state, _ = assemble(stored, thread_id)
        self._loaded_newest(key, state, lineage, version)
        return state

    def _loaded_newest(self, key: tuple[str, str], state: EncodedState, lineage: Lineage, version: bytes) -> None:
        self.known.loaded(key, lineage, version=version)
        self.keep(key, RecentState(lineage[0].token, state, self.hashed(key, state)))

    def exists(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Whether the checkpoint, or any of the thread, is there. One round trip."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        (found,) = yield Batch.of(self.sql.checkpoints.exists(tenant, thread_id, checkpoint_id))
        return bool(found.rows)

    def delete(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a thread; True if there was one. One round trip.

        States that build on a deleted checkpoint stay whole.
        """
        check_thread_id(thread_id)
        threads, checkpoints = self.sql.threads, self.sql.checkpoints
        if checkpoint_id is None:
            self.known.forget((tenant, thread_id))
            locked, *_ = yield Batch.of(
                threads.lock(tenant, thread_id),
                checkpoints.delete_all(tenant, thread_id),
                threads.drop(tenant, thread_id),
            )
            return locked.affected > 0
        check_checkpoint_id(checkpoint_id)
        known_version, version = self.known.version((tenant, thread_id)) or b"", os.urandom(16)
        locked, unnamed, *_ = yield Batch.of(
            threads.lock(tenant, thread_id, known_version, version),
            checkpoints.unname(tenant, thread_id, checkpoint_id),
            *checkpoints.retire_unnamed(tenant, thread_id),
            threads.drop_if_empty(tenant, thread_id),
        )
        if locked.affected:
            self.known.deleted((tenant, thread_id), unnamed.last_insert_id, known_version, version)
        return locked.affected > 0 and unnamed.affected > 0

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
        copy = self.sql.maintenance.copy_thread(tenant, source, destination, self.ttl_us)
        landed = self.sql.maintenance.find_copied(tenant, source, destination)
        try:
            results = yield Batch(copy, landed)
        except Duplicate:
            raise ThreadExists(
                f"Thread {destination!r} has checkpoints already; delete it first or copy to another id."
            ) from None
        return len(results) == 1 or results[3].affected > 0


def _stored_seq(results: Sequence[Result], inserted_at: int) -> int | None:
    """The seq of the row a save inserted, or None if its base was gone."""
    if len(results) == 1:
        return cast(int, results[0].rows[0][0])  # an earlier try had been carried out
    return results[0].last_insert_id if results[inserted_at].affected else None
