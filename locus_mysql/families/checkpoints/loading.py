"""Loading checkpoints, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...dialect import Statement
from ...dialect.checkpoints.loading import LineageRow
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint
from ...runtime.arguments import check_checkpoint_id, check_thread_id
from ...runtime.database import STATES
from .coding.codec import EncodedState
from .coding.delta import Held, Lineage, NotHeld, StoredRow, assemble, rows_needed
from .coding.digests import hash_logs
from .context import Context
from .state_rows import SealedRow, assemble_rows, chain_rows, check_row, rows_since
from .thread_cache import CachedState, Snapshot, ThreadKey

#: A checkpoint's state and the token of its row.
LoadedRow: TypeAlias = tuple[EncodedState, bytes]


class Loading:
    """Loads states.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sql = context.sql

    def load(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[EncodedState | None]:
        """Return the state of a checkpoint, or of the newest; None if there is none.

        One round trip; a second one if another process wrote, for the first time, to a thread whose newest checkpoint
        is cached here; if the newest checkpoint was deleted; or if the state builds on more rows than one statement
        reads. If the newest checkpoint is cached with its id, a load by that id only asks whether the thread is
        unchanged.
        """
        found = yield from self.load_row(tenant, thread_id, checkpoint_id)
        return None if found is None else found[0]

    def load_row(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[LoadedRow | None]:
        """Return a state as `load` does, with the token of the checkpoint's row."""
        check_thread_id(thread_id)
        before = self._context.cache.snapshot((tenant, thread_id))
        if checkpoint_id is None:
            known = yield from self._load_newest_known(tenant, thread_id, before)
            self._context.counters.look_up(STATES, hit=known is not None and before.held is not None)
            return known or (yield from self._load_newest(tenant, thread_id, before))
        loaded = yield from self._load_named(tenant, thread_id, checkpoint_id, before)
        if loaded is not None:
            self._context.known_ids.put(((tenant, thread_id), checkpoint_id), True)
        return loaded

    def named_rows(self, tenant: str, thread_id: str, checkpoint_id: str) -> Operation[Sequence[LineageRow]]:
        """Return a checkpoint's row and those it builds on; none if it does not exist.

        Raises:
            CorruptCheckpoint: The checkpoint's row does not fit its seal.
        """
        short_chain = self._sql.loading.named(tenant, thread_id, check_checkpoint_id(checkpoint_id))
        return (yield from self._rows(short_chain, tenant, thread_id, checkpoint_id))

    def newest_token(self, tenant: str, thread_id: str) -> Operation[bytes | None]:
        """Return the token of a thread's newest checkpoint; None if there is none. One round trip."""
        found = yield from fetch(self._sql.turns.newest(tenant, thread_id))
        return found[0].token if found else None

    def _load_named(
        self, tenant: str, thread_id: str, checkpoint_id: str, before: Snapshot
    ) -> Operation[LoadedRow | None]:
        """Return the state of the checkpoint with an id; from the cache if it is the newest one."""
        key = (tenant, thread_id)
        is_cached = before.state is not None and before.state.checkpoint_id == checkpoint_id
        if is_cached:
            # Any write that removes the id, or gives it to another state, changes the thread's version.
            is_shared = self._context.cache.is_shared(before)
            known = None if is_shared else (yield from self._load_unchanged(tenant, thread_id, before))
            self._context.counters.look_up(STATES, hit=known is not None)
            if known is not None:
                return known
        rows = yield from self.named_rows(tenant, thread_id, checkpoint_id)
        if not rows:
            if is_cached:  # the next load of this id reads rows at once
                self._context.cache.remember(key, before, before.with_state(None, before.stamp))
            return None
        state, lineage = assemble_rows(rows, thread_id, self._context.sealing.of(tenant, thread_id))
        version = rows[0].version
        if version == lineage[0].token:  # the thread's last write was the save of this checkpoint
            self._remember_newest(tenant, thread_id, before, state, lineage, version, checkpoint_id)
        else:
            self._context.cache.remember(key, before, before.after_loading(lineage, version))
        return state, lineage[0].token

    def _load_newest(self, tenant: str, thread_id: str, before: Snapshot) -> Operation[LoadedRow | None]:
        """Return the newest state without the cache."""
        rows = yield from self._rows(self._sql.loading.newest(tenant, thread_id), tenant, thread_id, None)
        if not rows:
            self._context.cache.forget((tenant, thread_id), before)
            return None
        state, lineage = assemble_rows(rows, thread_id, self._context.sealing.of(tenant, thread_id))
        self._remember_newest(tenant, thread_id, before, state, lineage, rows[0].version)
        return state, lineage[0].token

    def _load_since(self, tenant: str, thread_id: str, before: Snapshot, held: Held) -> Operation[LoadedRow | None]:
        """Return the newest state if it builds on the cached one; otherwise None."""
        rows = yield from fetch(self._sql.loading.since(tenant, thread_id, held.lineage[0].seq))
        try:
            sealing = self._context.sealing.of(tenant, thread_id)
            state, lineage = assemble(rows_since(rows, held), thread_id, sealing, held)
        except NotHeld:
            return None
        self._remember_newest(tenant, thread_id, before, state, lineage, rows[0].version)
        return state, lineage[0].token

    def _rows(
        self, short_chain: Statement, tenant: str, thread_id: str, checkpoint_id: str | None
    ) -> Operation[Sequence[LineageRow]]:
        """Return a checkpoint's row and those it builds on, by a second statement if the chain is long.

        Args:
            short_chain: The statement that reads a short chain in one row.
            tenant: The thread's tenant.
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the newest.

        Raises:
            CorruptCheckpoint: The checkpoint's row does not fit its seal.
        """
        (found,) = yield Batch.of(short_chain)
        rows: Sequence[LineageRow] | None = chain_rows(found.rows[0]) if found.rows else ()
        if rows is None:
            rows = yield from fetch(self._sql.loading.all_rows(tenant, thread_id, checkpoint_id))
        if rows and checkpoint_id is not None:
            row = SealedRow(checkpoint_id, rows[0].token, rows[0].metadata, rows[0].seal)
            check_row(row, thread_id, self._context.sealing.of(tenant, thread_id))
        return rows

    def _load_newest_known(self, tenant: str, thread_id: str, before: Snapshot) -> Operation[LoadedRow | None]:
        """Return the newest state if the cache and one short query suffice."""
        version, lineage, held = before.version, before.newest, before.held
        if version is None or not lineage:
            return None
        if self._context.cache.is_shared(before):
            return None if held is None else (yield from self._load_since(tenant, thread_id, before, held))
        if held is not None:
            return (yield from self._load_unchanged(tenant, thread_id, before))
        needed = rows_needed(lineage)
        seqs = [ancestor.seq for ancestor in needed]
        rows = yield from fetch(self._sql.loading.rows(tenant, thread_id, version, seqs))
        if len(rows) != len(seqs):
            return None
        stored = [StoredRow(one.seq, one.token, row.payload) for one, row in zip(needed, rows, strict=True)]
        state, _ = assemble_rows(stored, thread_id, self._context.sealing.of(tenant, thread_id))
        self._remember_newest(tenant, thread_id, before, state, lineage, version)
        return state, lineage[0].token

    def _load_unchanged(self, tenant: str, thread_id: str, before: Snapshot) -> Operation[LoadedRow | None]:
        """Return the cached state if the thread still has the snapshot's version; otherwise None."""
        held, version = before.held, before.version
        if held is None or version is None:
            return None
        (found,) = yield Batch.of(self._sql.threads.unchanged(tenant, thread_id, version))
        return (held.state, held.lineage[0].token) if found.rows else None

    def _remember_newest(
        self,
        tenant: str,
        thread_id: str,
        before: Snapshot,
        state: EncodedState,
        lineage: Lineage,
        version: bytes,
        checkpoint_id: str | None = None,
    ) -> None:
        hashed = hash_logs(state, before.state.hashed if before.state else {})
        kept = CachedState(state, hashed, checkpoint_id=checkpoint_id)
        self._context.cache.remember((tenant, thread_id), before, before.after_loading_newest(lineage, version, kept))

    def refresh(self, key: ThreadKey, before: Snapshot) -> Operation[Snapshot | None]:
        """Read a thread's newest checkpoint into the cache.

        Args:
            key: The thread.
            before: The cached snapshot of the thread.

        Returns:
            The new snapshot; None if the newest checkpoint is damaged.
        """
        try:
            held = before.held
            if held is None or (yield from self._load_since(*key, before, held)) is None:
                yield from self._load_newest(*key, before)
        except CorruptCheckpoint:
            return None
        return self._context.cache.snapshot(key)
