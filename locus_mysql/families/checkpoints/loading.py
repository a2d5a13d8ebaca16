"""Loading checkpoints, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...dialect import Statement
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint
from ...runtime.arguments import check_checkpoint_id, check_thread_id
from ...runtime.database import STATES
from .coding.codec import EncodedState, hash_logs
from .coding.delta import Held, Lineage, NotHeld, StoredRow, assemble, rows_needed
from .records import SealedRow, assemble_rows, chain_rows, check_row, rows_since
from .statements import loading, threads
from .statements.loading import LineageRow
from .statements.tables import ThreadKey
from .thread_cache import CachedState, Context, Snapshot

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
        loaded = yield from self.load_row(tenant, thread_id, checkpoint_id)
        return None if loaded is None else loaded[0]

    def load_row(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[LoadedRow | None]:
        """Return a state as `load` does, with the token of the checkpoint's row."""
        key = ThreadKey(tenant, check_thread_id(thread_id))
        before = self._context.cache.snapshot(key)
        if checkpoint_id is None:
            cached = yield from self._load_newest_cached(key, before)
            self._context.counters.look_up(STATES, hit=cached is not None and before.held is not None)
            return cached or (yield from self._load_newest(key, before))
        loaded = yield from self._load_named(key, checkpoint_id, before)
        if loaded is not None:
            self._context.known_ids.put((key, checkpoint_id), True)
        return loaded

    def named_rows(self, key: ThreadKey, checkpoint_id: str) -> Operation[Sequence[LineageRow]]:
        """Return a checkpoint's row and those it builds on; none if it does not exist.

        Raises:
            CorruptCheckpoint: The checkpoint's row does not fit its seal.
        """
        short_chain = loading.LOAD_NAMED(self._sql, key, checkpoint_id=check_checkpoint_id(checkpoint_id))
        return (yield from self._rows(short_chain, key, checkpoint_id))

    def newest_token(self, tenant: str, thread_id: str) -> Operation[bytes | None]:
        """Return the token of a thread's newest checkpoint; None if there is none. One round trip."""
        rows = yield from fetch(threads.NEWEST(self._sql, ThreadKey(tenant, thread_id)))
        return rows[0].token if rows else None

    def _load_named(self, key: ThreadKey, checkpoint_id: str, before: Snapshot) -> Operation[LoadedRow | None]:
        """Return the state of the checkpoint with an id; from the cache if it is the newest one."""
        is_cached = before.state is not None and before.state.checkpoint_id == checkpoint_id
        if is_cached:
            # Any write that removes the id, or gives it to another state, changes the thread's version.
            is_shared = self._context.cache.is_shared(before)
            cached = None if is_shared else (yield from self._load_unchanged(key, before))
            self._context.counters.look_up(STATES, hit=cached is not None)
            if cached is not None:
                return cached
        rows = yield from self.named_rows(key, checkpoint_id)
        if not rows:
            if is_cached:  # the next load of this id reads rows at once
                self._context.cache.remember(key, before, before.with_state(None, before.stamp))
            return None
        state, lineage = assemble_rows(rows, key.thread_id, self._context.sealing.of(*key))
        version = rows[0].version
        if version == lineage[0].token:  # the thread's last write was the save of this checkpoint
            self._remember_newest(key, before, state, lineage, version, checkpoint_id)
        else:
            self._context.cache.remember(key, before, before.after_loading(lineage, version))
        return state, lineage[0].token

    def _load_newest(self, key: ThreadKey, before: Snapshot) -> Operation[LoadedRow | None]:
        """Return the newest state without the cache."""
        rows = yield from self._rows(loading.LOAD_NEWEST(self._sql, key), key, None)
        if not rows:
            self._context.cache.forget(key, before)
            return None
        state, lineage = assemble_rows(rows, key.thread_id, self._context.sealing.of(*key))
        self._remember_newest(key, before, state, lineage, rows[0].version)
        return state, lineage[0].token

    def _load_since(self, key: ThreadKey, before: Snapshot, held: Held) -> Operation[LoadedRow | None]:
        """Return the newest state if it builds on the cached one; otherwise None."""
        rows = yield from fetch(loading.LOAD_SINCE(self._sql, key, seq=held.lineage[0].seq))
        try:
            sealing = self._context.sealing.of(*key)
            state, lineage = assemble(rows_since(rows, held), key.thread_id, sealing, held)
        except NotHeld:
            return None
        self._remember_newest(key, before, state, lineage, rows[0].version)
        return state, lineage[0].token

    def _rows(
        self, short_chain: Statement, key: ThreadKey, checkpoint_id: str | None
    ) -> Operation[Sequence[LineageRow]]:
        """Return a checkpoint's row and those it builds on, by a second statement if the chain is long.

        Args:
            short_chain: The statement that reads a short chain in one row.
            key: The thread.
            checkpoint_id: The checkpoint; None for the newest.

        Raises:
            CorruptCheckpoint: The checkpoint's row does not fit its seal.
        """
        (result,) = yield Batch.of(short_chain)
        rows: Sequence[LineageRow] | None = chain_rows(result.rows[0]) if result.rows else ()
        if rows is None:
            pieces = loading.OF_NEWEST if checkpoint_id is None else loading.OF_NAMED
            rows = yield from fetch(loading.LOAD_ALL(self._sql, key, pieces=pieces, checkpoint_id=checkpoint_id))
        if rows and checkpoint_id is not None:
            row = SealedRow(checkpoint_id, rows[0].token, rows[0].metadata, rows[0].seal)
            check_row(row, key.thread_id, self._context.sealing.of(*key))
        return rows

    def _load_newest_cached(self, key: ThreadKey, before: Snapshot) -> Operation[LoadedRow | None]:
        """Return the newest state if the cache and one short query suffice."""
        version, lineage, held = before.version, before.newest, before.held
        if version is None or not lineage:
            return None
        if self._context.cache.is_shared(before):
            return None if held is None else (yield from self._load_since(key, before, held))
        if held is not None:
            return (yield from self._load_unchanged(key, before))
        needed = rows_needed(lineage)
        seqs = [ancestor.seq for ancestor in needed]
        rows = yield from fetch(loading.LOAD_ROWS(self._sql, key, version=version, seqs=seqs))
        if len(rows) != len(seqs):
            return None
        stored = [StoredRow(one.seq, one.token, row.payload) for one, row in zip(needed, rows, strict=True)]
        state, _ = assemble_rows(stored, key.thread_id, self._context.sealing.of(*key))
        self._remember_newest(key, before, state, lineage, version)
        return state, lineage[0].token

    def _load_unchanged(self, key: ThreadKey, before: Snapshot) -> Operation[LoadedRow | None]:
        """Return the cached state if the thread still has the snapshot's version; otherwise None."""
        held, version = before.held, before.version
        if held is None or version is None:
            return None
        (result,) = yield Batch.of(threads.UNCHANGED(self._sql, key, version=version))
        return (held.state, held.lineage[0].token) if result.rows else None

    def _remember_newest(
        self,
        key: ThreadKey,
        before: Snapshot,
        state: EncodedState,
        lineage: Lineage,
        version: bytes,
        checkpoint_id: str | None = None,
    ) -> None:
        hashed = hash_logs(state, before.state.hashed if before.state else {})
        kept = CachedState(state, hashed, checkpoint_id=checkpoint_id)
        self._context.cache.remember(key, before, before.after_loading_newest(lineage, version, kept))

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
            if held is None or (yield from self._load_since(key, before, held)) is None:
                yield from self._load_newest(key, before)
        except CorruptCheckpoint:
            return None
        return self._context.cache.snapshot(key)
