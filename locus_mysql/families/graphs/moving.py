"""Reads whole checkpoints for exports, and writes them for imports, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ...config import MySQLConfig
from ...dialect import Query
from ...dialect.like import like
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint
from ...runtime.exact_json import canonical_text
from ...runtime.sealing import Sealing
from ...runtime.server_times import as_sql_time, aware
from . import keys
from .decoding import Decoded, Parts, decode_checkpoints
from .operations import GraphOperations
from .payload import part_identity, stored_thread
from .records import Base, LabelledValue, LoadedGraphCheckpoint, LoadedWrite, NewGraphCheckpoint, NewValue
from .statements import moving
from .statements.loading import READ_SEVERAL, LoadedRow
from .statements.moving import MarkRow
from .statements.tables import ThreadKey
from .values import EncodedValue


class KeptValue(NamedTuple):
    """A value of a checkpoint.

    Args:
        label: The version assigned by the class that saved it.
        encoded: Its bytes; None if it is the parent's value.
    """

    label: Any
    encoded: EncodedValue | None


@dataclass(frozen=True, slots=True)
class KeptGraphCheckpoint:
    """A checkpoint with all its stored data.

    Args:
        thread_id: Its thread.
        seq: Its seq in the thread.
        ns: Its namespace.
        checkpoint_id: Its id.
        parent_id: The id of its parent.
        created_at: When it was saved.
        codec: The class that encoded it.
        head: Everything except its values.
        values: Its values by name, in their order.
        snapshots: See `Content.snapshots`.
        needs: See `NewGraphCheckpoint.needs`.
        metadata: JSON text.
        run_key: The key of the run that made it.
        hidden: Whether it was deleted and is kept because others need it.
        writes: The writes of its tasks.
    """

    thread_id: str
    seq: int
    ns: str
    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    codec: str
    head: EncodedValue
    values: Mapping[str, KeptValue]
    snapshots: frozenset[str]
    needs: int
    metadata: str | None
    run_key: bytes | None
    hidden: bool
    writes: Sequence[LoadedWrite]

    @property
    def key(self) -> bytes:
        """Its key."""
        return keys.checkpoint_key(self.ns, self.checkpoint_id)

    @property
    def parent_key(self) -> bytes | None:
        """The key of its parent."""
        return None if self.parent_id is None else keys.checkpoint_key(self.ns, self.parent_id)


@dataclass(frozen=True, slots=True)
class Damaged:
    """A checkpoint that cannot be read."""

    seq: int
    error: CorruptCheckpoint


#: The values of checkpoints by the checkpoints' keys, as they are stored, by which equal values are recognised.
StoredValues = dict[bytes, Mapping[str, LabelledValue]]


class MovingOperations:
    """Reads and writes whole checkpoints of one tenant.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._tenant = config.tenant
        self._writing = GraphOperations(config)
        self._sql = self._writing.sql
        self.schema = self._sql.schema
        self._sealing = Sealing(config.encryption, self.schema.family)

    def threads(self, after: str, pattern: str, limit: int = 500) -> Operation[list[str]]:
        """Return ids of threads after an id that match a glob, in their order. One round trip."""
        rows = yield from fetch(
            moving.THREADS(self._sql, tenant=self._tenant, after=after, pattern=like(pattern), limit=limit)
        )
        return [row.thread_id for row in rows]

    def count(self, pattern: str) -> Operation[int]:
        """Return the number of checkpoints of threads that match a glob. One round trip."""
        (row,) = yield from fetch(moving.COUNT_CHECKPOINTS(self._sql, tenant=self._tenant, pattern=like(pattern)))
        return row.total

    def marks(self, thread_id: str, after: int = 0) -> Operation[dict[bytes, MarkRow]]:
        """Return key and other columns of a thread's checkpoints with a seq above this. One round trip."""
        key = ThreadKey(self._tenant, thread_id)
        rows = yield from fetch(moving.MARKS(self._sql, key, after=after, limit=moving.ALL))
        return {row.checkpoint_key: row for row in rows}

    def page(
        self, thread_id: str, after: int, limit: int, parents: StoredValues
    ) -> Operation[list[KeptGraphCheckpoint | Damaged]]:
        """Return checkpoints after a position, oldest first.

        Args:
            thread_id: The thread.
            after: The seq of the last checkpoint of the page before; 0 for the first page.
            limit: The maximum number of checkpoints to return.
            parents: The stored values of checkpoints of the pages before; those of this page are added.
        """
        checkpoints = self._next(thread_id, after, limit)
        marks = moving.MARKS(self._sql, ThreadKey(self._tenant, thread_id), after=after, limit=limit)
        results = yield Batch((checkpoints, marks))
        flags = {row.checkpoint_key: row for row in results.rows(marks)}
        try:
            decoded = self._decoded(thread_id, results.rows(checkpoints))
            return [_kept(one, flags[one.row.checkpoint_key], parents) for one in decoded[::-1]]
        except CorruptCheckpoint as error:
            if limit > 1:  # read them one by one, to leave out only the damaged one
                found: list[KeptGraphCheckpoint | Damaged] = []
                for _ in range(limit):
                    one = yield from self.page(thread_id, after, 1, parents)
                    if not one:
                        break
                    found += one
                    after = one[-1].seq
                return found
            return [Damaged(row.seq, error) for row in flags.values()]

    def save(self, kept: KeptGraphCheckpoint) -> Operation[None]:
        """Save a checkpoint as the newest of its thread, with its writes.

        Raises:
            CheckpointExists: The thread has a checkpoint of this id.
            CorruptCheckpoint: It shares values with its parent, which does not exist.
        """
        saving = self._writing.saving
        base = yield from saving.find_base(self._tenant, kept.thread_id, kept.ns, kept.parent_id)
        token = os.urandom(16)
        yield from saving.save(self._tenant, kept.thread_id, _new(kept, base, token), base)
        yield from self.mark(kept, token)
        yield from self.put_writes(kept, kept.writes)

    def mark(self, kept: KeptGraphCheckpoint, token: bytes = b"") -> Operation[None]:
        """Give a stored checkpoint its original time, run and visibility.

        Args:
            kept: The checkpoint.
            token: The token of its save; empty for whichever is stored.
        """
        yield Batch.of(
            moving.MARK(
                self._sql,
                ThreadKey(self._tenant, kept.thread_id),
                checkpoint_key=kept.key,
                token=token,
                created_at=as_sql_time(kept.created_at),
                hidden=int(kept.hidden),
                run_key=kept.run_key,
            )
        )

    def put_writes(self, kept: KeptGraphCheckpoint, writes: Sequence[LoadedWrite]) -> Operation[None]:
        """Store writes of tasks at a checkpoint; those that exist stay as they are."""
        for task_id in dict.fromkeys(write.task_id for write in writes):
            rows = [write for write in writes if write.task_id == task_id]
            yield from self._writing.saving.put_writes(
                self._tenant, kept.thread_id, kept.key, task_id, rows, replace=False
            )

    def load(self, thread_id: str, seq: int) -> Operation[Decoded]:
        """Return the checkpoint of a seq, with its stored data.

        Raises:
            CorruptCheckpoint: It is damaged, or was deleted meanwhile.
        """
        rows = yield from fetch(self._next(thread_id, seq - 1, 1))
        decoded = self._decoded(thread_id, rows)
        if not decoded:
            raise CorruptCheckpoint("It was deleted meanwhile.")
        return decoded[0]

    def _next(self, thread_id: str, after: int, limit: int) -> Query[LoadedRow]:
        """Return the query for checkpoints with a seq above this, oldest first, with their parts and writes."""
        key, pieces = ThreadKey(self._tenant, thread_id), {"chosen": moving.NEXT, "cached": ""}
        return READ_SEVERAL(self._sql, key, after=after, limit=limit, pieces=pieces)

    def _decoded(self, thread_id: str, rows: Sequence[LoadedRow]) -> list[Decoded]:
        thread = stored_thread(self._tenant, thread_id, self._sealing)
        return decode_checkpoints(thread, None, rows, Parts(part_identity(thread)), None)


def _kept(one: Decoded, mark: MarkRow, parents: StoredValues) -> KeptGraphCheckpoint:
    """Return a checkpoint. Values that are stored as the parent's are left out."""
    loaded, row, content = one.loaded, one.row, one.content
    parent_id = loaded.parent_id
    before = {} if parent_id is None else parents.get(keys.checkpoint_key(row.ns, parent_id), {})
    values = {}
    for name, held in content.values.items():
        same = name in before and before[name].value == held.value
        values[name] = KeptValue(held.label, None if same else loaded.value(name))
    parents[row.checkpoint_key] = content.values
    return KeptGraphCheckpoint(
        thread_id=row.thread_id,
        seq=row.seq,
        ns=row.ns,
        checkpoint_id=row.checkpoint_id,
        parent_id=parent_id,
        created_at=aware(mark.created_at),
        codec=content.codec,
        head=content.head,
        values=values,
        snapshots=content.snapshots,
        needs=0 if row.unlinked else row.needs,
        metadata=row.metadata,
        run_key=mark.run_key,
        hidden=bool(mark.hidden),
        writes=sorted(loaded.writes, key=lambda write: (write.task_id, write.idx)),
    )


def _new(kept: KeptGraphCheckpoint, base: Base | None, token: bytes) -> NewGraphCheckpoint:
    """Return a checkpoint to save."""

    def values(base: Base | None) -> list[NewValue]:
        held = {} if base is None else base.values
        missing = [name for name, value in kept.values.items() if value.encoded is None and name not in held]
        if missing:
            raise CorruptCheckpoint(f"Its parent {kept.parent_id!r}, which has its {missing[0]!r}, does not exist.")
        return [NewValue(name, value.label, value.encoded) for name, value in kept.values.items()]

    return NewGraphCheckpoint(
        codec=kept.codec,
        ns=kept.ns,
        checkpoint_id=kept.checkpoint_id,
        parent_id=kept.parent_id,
        head=kept.head,
        values=values,
        metadata=kept.metadata,
        run_id=None,
        needs=kept.needs,
        replace=False,
        token=token,
        snapshots=kept.snapshots,
        counted=frozenset() if base is None else base.snapshots,
    )


def difference(
    kept: KeptGraphCheckpoint, found: LoadedGraphCheckpoint, parent: LoadedGraphCheckpoint | None
) -> str | None:
    """Return what of a stored checkpoint differs from this one; None if it is identical, apart from its writes.

    Args:
        kept: The checkpoint.
        found: The stored one.
        parent: The stored parent, which is identical to the checkpoint's parent, if that was read.
    """
    if (kept.codec, kept.head, kept.parent_id) != (found.codec, found.head, found.parent_id):
        return "its content"
    if kept.metadata != found.metadata:
        return "its metadata"
    labels = {name: value.label for name, value in kept.values.items()}
    if canonical_text(labels) != canonical_text(dict(found.labels)):
        return "the version of a value"
    for name, value in kept.values.items():
        wanted = value.encoded
        if wanted is None:
            if parent is None or name not in parent.labels:
                return f"the value {name!r}, which its parent lacks"
            wanted = parent.value(name)
        if wanted != found.value(name):
            return f"the value {name!r}"
    return None
