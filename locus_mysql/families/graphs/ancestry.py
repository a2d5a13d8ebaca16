"""Writes to channels along a chain of ancestors, as generators that do no I/O: `Ancestry`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...dialect.graphs import GraphDialect, result_rows
from ...dialect.graphs.result_rows import AncestorRow, AncestorsWriteRow, LineRow
from ...engine.operation import Operation, fetch, read_rows
from ...runtime.sealing import Sealing
from . import keys
from .chains import Inline, Stored
from .damage import naming_checkpoint
from .decoding import ancestor_content, decode_writes
from .parts import Parts
from .records import ChannelHistory, LoadedWrite
from .sealed_rows import StoredThread, part_identity, stored_thread
from .values import EncodedValue

#: Ancestors that are read in one round trip.
ANCESTORS_PAGE = 256


@dataclass(slots=True)
class _Walk:
    """A walk along a chain of ancestors.

    Args:
        missing: Channels whose nearest value was not found yet.
        passed: The keys of the checkpoints that were passed.
        writes: By channel, the writes at each checkpoint, newest checkpoint first.
        seeds: By channel, the nearest value, and the id of the checkpoint that has it.
    """

    missing: set[str]
    passed: set[bytes]
    writes: dict[str, list[list[LoadedWrite]]]
    seeds: dict[str, tuple[Inline | Stored, str]] = field(default_factory=dict)

    def take(self, thread: StoredThread, row: AncestorRow, writes: Sequence[LoadedWrite]) -> bool:
        """Record an ancestor with its writes. False at the end of the walk."""
        if row.checkpoint_key in self.passed:
            return False
        self.passed.add(row.checkpoint_key)
        for name in self.missing:
            own = [write for write in writes if write.channel == name]
            if own:
                self.writes[name].append(own)
        with naming_checkpoint(thread.thread_id, row.checkpoint_id):
            held = ancestor_content(thread, row).values
        for name in self.missing & held.keys():
            self.seeds[name] = held[name].value, row.checkpoint_id
        self.missing -= held.keys()
        return bool(self.missing)


class Ancestry:
    """Reads chains of ancestors.

    Args:
        sql: The statements.
        sealing: Decrypts the family.
    """

    def __init__(self, sql: GraphDialect, sealing: Sealing) -> None:
        self._sql = sql
        self._sealing = sealing

    def channel_history(
        self, tenant: str, thread_id: str, ns: str, checkpoint_id: str, channels: Sequence[str]
    ) -> Operation[dict[str, ChannelHistory]]:
        """Return the writes to channels along a checkpoint's ancestors, per channel up to the nearest with a value.

        One round trip for 256 ancestors, and one for the values found. Ends where a chain of ancestors returns to a
        checkpoint it has passed, which happens if that was saved again under another parent.
        """
        key = (tenant, thread_id)
        thread = stored_thread(*key, self._sealing)
        first = keys.checkpoint_key(ns, checkpoint_id)
        walk = _Walk(set(channels), {first}, {name: [] for name in channels})
        start: bytes | None = first
        while start is not None and walk.missing:
            query = self._sql.loading.ancestors(*key, start, ANCESTORS_PAGE, sorted(walk.missing))
            start = _follow(walk, thread, (yield from fetch(query)))
        parts = Parts(part_identity(thread))
        numbers = [link.part for value, _ in walk.seeds.values() if isinstance(value, Stored) for link in value.chain]
        if numbers:
            found = yield from fetch(self._sql.loading.parts(*key, keys.ns_key(ns), numbers))
            parts.sealed = {part.number: part.chunk for part in found}
        values: dict[str, EncodedValue] = {}
        for name, (value, seeded_at) in walk.seeds.items():
            with naming_checkpoint(thread_id, seeded_at):
                values[name] = parts.encoded(value)
        return {name: ChannelHistory(walk.writes[name][::-1], values.get(name)) for name in channels}


def _follow(walk: _Walk, thread: StoredThread, rows: Sequence[LineRow]) -> bytes | None:
    """Walk along a page of a chain; return the key of the checkpoint that begins the next page, if any.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    line = read_rows(AncestorRow, [row for row in rows if row.kind == result_rows.CHECKPOINT])
    line.sort(key=lambda row: row.depth)
    for row in line[:1]:  # its values are not needed, but it leads to its parent
        with naming_checkpoint(thread.thread_id, row.checkpoint_id):
            ancestor_content(thread, row)
    names = {row.depth: row.checkpoint_id for row in line}
    writes: dict[int, list[LoadedWrite]] = {}
    for write in read_rows(AncestorsWriteRow, [row for row in rows if row.kind == result_rows.WRITE]):
        with naming_checkpoint(thread.thread_id, names.get(write.depth, "?")):
            writes.setdefault(write.depth, []).extend(decode_writes(thread, write.checkpoint_key, (write,)))
    for row in line[1:]:
        if not walk.take(thread, row, writes.get(row.depth, ())):
            return None
        if row.depth == ANCESTORS_PAGE:
            return row.checkpoint_key
    return None
