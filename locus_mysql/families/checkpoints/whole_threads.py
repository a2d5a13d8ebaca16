"""Copying and rewriting whole threads, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ...errors import InvalidInput, ThreadExists, Unavailable
from ...records.ledger import FIND, RECORD
from ...runtime.arguments import check_thread_id
from ...runtime.sealing import Sealing
from ...runtime.server_rows import as_sql_time, aware
from .coding.codec import HashedLogs, hash_logs
from .coding.delta import Lineage, encode_delta, extend, seal_payload
from .records import NewCheckpoint, assemble_rows, chain_of, check_row, row_seal
from .statements import removing, saving, threads
from .statements.saving import NewRow, SequencedRow, WholeRow
from .statements.tables import Kind, ThreadKey
from .thread_cache import Context

#: From a checkpoint's id and its state's text, the new state with its search text.
Change: TypeAlias = Callable[[str, bytes], NewCheckpoint]

#: A rewrite is tried at most this many times: it starts over if the thread was changed meanwhile.
_REWRITES = 10


class WholeThreads:
    """Copies and rewrites threads.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sql = context.sql
        self._ttl_us = context.ttl_us

    def copy(self, tenant: str, source: str, destination: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints; False if there is none. One round trip; states stay on the server.

        With encryption there are several, and the rows pass through this process, as each is bound to its thread.

        Raises:
            ThreadExists: The destination has checkpoints. Nothing was changed.
            EncryptionError: A row is encrypted, and the store has no keys. Nothing was changed.
            VersionConflict: An encrypted thread was written to whenever it was read. Nothing was changed.
        """
        check_thread_id(source)
        check_thread_id(destination)
        if source == destination:
            raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
        try:
            if self._context.sealing.is_on:
                # A store needs these modules for this only.
                from ...records.moving import Moving
                from ...records.transfer import copy_thread
                from .family import tables

                config = self._context.config.model_copy(update={"tenant": tenant})
                kind = cast("Kind", self._sql.schema.family)
                rows = Moving(
                    tables(config.table_prefix, kind, search=config.search, search_parser=config.search_parser), config
                )
                return (yield from copy_thread(rows, source, destination, config.ttl_s, version=os.urandom(16)))
            return (yield from self._copy(tenant, source, destination))
        finally:
            self._context.cache.forget(ThreadKey(tenant, destination))

    def _copy(self, tenant: str, source: str, destination: str) -> Operation[bool]:
        token = os.urandom(16)
        sql = self._sql
        copy: dict[str, Any] = {"tenant": tenant, "source": source, "destination": destination}
        written = ThreadKey(tenant, destination)
        outcome_query = FIND(sql, tenant=tenant, token=token)
        before, after = (self._context.sealing.of(tenant, thread_id) for thread_id in (source, destination))
        shift = before.shift(after)
        try:
            yield Batch.of(
                saving.LOCK_BOTH(sql, **copy),
                saving.SOURCE_HELD(sql, token=token, **copy),
                removing.RECORD_EXPIRED(sql, written),
                saving.DELETE_EXPIRED(sql, written),
                saving.DROP_EXPIRED(sql, written),
                saving.COPY_THREAD(sql, ttl_us=self._ttl_us, **copy),
                saving.COPY_ROWS(sql, shift=shift, **copy),
                RECORD(sql, tenant=tenant, token=token),
                outcome_query=outcome_query,
            )
        except Duplicate as error:
            if error.table == self._sql.names["checkpoints"]:  # the copied rows had no thread row; now they have one
                yield Batch.of(threads.RESTORE_ROW(sql, written, version=os.urandom(16), ttl_us=self._ttl_us))
            raise ThreadExists(
                f"Thread {destination!r} has checkpoints already; delete it first or copy to another id."
            ) from None
        except Outdated:
            for row in (yield from fetch(saving.ENCRYPTED(sql, ThreadKey(tenant, source)))):
                before.open(row.stored, f"Thread {source!r}", "payload")
            return False
        return True

    def rewrite(self, tenant: str, thread_id: str, change: Change) -> Operation[None]:
        """Replace the state of every checkpoint of a thread, in place: ids, order, times and metadata stay.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            change: Returns the new states. It may be called again for the same checkpoint.

        Raises:
            Unavailable: Another process wrote to the thread during every attempt.
            CorruptCheckpoint: A row of the thread is damaged; nothing was changed.
        """
        sql, key = self._sql, ThreadKey(tenant, thread_id)
        for _ in range(_REWRITES):
            found = yield from fetch(saving.READ_THREAD(sql, key))
            if not found:
                return
            known_version, version = found[0].version, os.urandom(16)
            sealing = self._context.sealing.of(tenant, thread_id)
            rows = rewritten(found, change, thread_id, sealing, compression=self._context.config.compression)
            outcome_query = FIND(sql, key, token=version)
            try:
                yield Batch.of(
                    threads.LOCK_UNCHANGED(sql, key, version=version, known_version=known_version),
                    threads.GUARD_ONCE(sql, key, token=version),
                    removing.RECORD_ALL(sql, key),
                    RECORD(sql, key, token=version),
                    removing.DELETE_ALL(sql, key),
                    tuple(saving.PUT_ROW(sql, key, row.row, row) for row in rows),
                    outcome_query=outcome_query,
                )
            except Outdated:
                continue
            self._context.cache.forget(key)
            return
        raise Unavailable(f"Thread {thread_id!r} was saved during every attempt; try again when nothing writes to it.")

    def threads_with_old_messages(self, tenant: str, before: datetime, after: str, limit: int) -> Operation[list[str]]:
        """Return a page of ids of threads with a checkpoint whose oldest message is from before a time."""
        moment = as_sql_time(before)
        values: dict[str, Any] = {"tenant": tenant, "before": moment, "after": after, "limit": limit}
        rows = yield from fetch(saving.THREADS_WITH_OLD_MESSAGES(self._sql, **values))
        return [row.thread_id for row in rows]


def rewritten(
    rows: Sequence[WholeRow], change: Change, thread_id: str, sealing: Sealing, *, compression: Literal["zlib", "none"]
) -> list[SequencedRow]:
    """Return a thread's rows with every state changed.

    Args:
        rows: The thread's rows, oldest first.
        change: Returns the new states.
        thread_id: The thread, to be named in an error.
        sealing: Seals and opens the rows of the thread.
        compression: Whether payloads may be compressed.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    stored = {row.seq: row for row in rows}
    lineages: dict[int, Lineage] = {}
    hashed: HashedLogs = {}
    sequenced = []
    for seq, row in stored.items():
        if row.checkpoint_id is None:
            continue
        check_row(row, thread_id, sealing)
        state, before = assemble_rows(chain_of(stored, seq), thread_id, sealing)
        new = change(row.checkpoint_id, state.text())
        parent = _nearest_named(stored, seq, row.parent_seq)
        provisional = before[0].provisional
        lineage = lineages[parent] if parent is not None else ()
        encoded = new.encode(None).state
        hashed, held = hash_logs(encoded, hashed), hashed
        token = os.urandom(16)
        delta = encode_delta(encoded, hashed, lineage, provisional=provisional, compression=compression, held=held)
        search_text, continues = ("", False) if provisional else new.search_text(delta)
        lineages[seq] = extend(lineage, delta, seq, token, provisional=provisional)
        values = NewRow(
            checkpoint_id=row.checkpoint_id,
            token=token,
            payload=seal_payload(sealing, delta, token),
            seal=row_seal(sealing, row.checkpoint_id, token, row.metadata),
            parent_seq=parent,
            continues=2 if provisional else int(continues),
            metadata=row.metadata,
            metadata_keys=row.metadata_keys,
            search_text=search_text or None,
            unindexed=1 if search_text else None,
            oldest_at=new.oldest_at,
        )
        base_seq = seq if delta.base is None else delta.base.seq
        sequenced.append(SequencedRow(values, seq, base_seq, as_sql_time(aware(row.created_at))))
    return sequenced


def _nearest_named(stored: dict[int, WholeRow], seq: int, parent_seq: int | None) -> int | None:
    """Return the nearest named ancestor of a row. A parent that is not older than its child counts as none."""
    while parent_seq is not None and parent_seq < seq and parent_seq in stored:
        if stored[parent_seq].checkpoint_id is not None:
            return parent_seq
        seq, parent_seq = parent_seq, stored[parent_seq].parent_seq
    return None
