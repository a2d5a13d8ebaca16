"""Looking at checkpoints of agents, of plain dicts and of current states, as generators that do no I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from ..checkpoints.records import checkpoint_info, decode_state_text
from ..checkpoints.rows import as_sql_time, assemble_rows, aware
from ..config import MySQLConfig
from ..database.arguments import check_checkpoint_id, check_limit, check_text, check_thread_id, encode_metadata
from ..database.matching import contains
from ..database.pairs import lookup_keys
from ..dialect import Statement
from ..dialect.checkpoints.dialect import CheckpointDialect
from ..dialect.checkpoints.tables import Kind
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint, InvalidInput
from .conversation import messages_of
from .cursors import from_cursor, to_cursor
from .records import CheckpointRow, Hit, Page, StateView, Statistics, Tagged, ThreadRow, Turn
from .sources import Wanted

#: Threads that one page looks at, at most: by ids and times alone; where their newest metadata is read as well; and
#: where all that they take is summed up.
STEP, STEP_BY_METADATA, STEP_BY_SIZE = 50_000, 2_000, 1_000


class CheckpointThreads:
    """The threads of one kind of states, of one tenant: a `ThreadSource`.

    Args:
        config: The options.
        kind: Which states.
    """

    def __init__(self, config: MySQLConfig, kind: Kind) -> None:
        self.family = kind
        # Whether there is a full-text index matters to a search only.
        self.sql = CheckpointDialect(config.table_prefix, kind, search=False)
        self.schema = self.sql.schema
        self._tenant = config.tenant

    def threads(self, wanted: Wanted, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """See `ThreadSource.threads`. One round trip, in which a bounded number of threads is looked at."""
        limit = check_limit(limit, least=1)
        pattern = None if check_text(wanted.pattern, "Pattern").strip("*") == "" else wanted.pattern
        behind = None if cursor is None else cast("tuple[str, str]", tuple(from_cursor(cursor, str, str)))
        keys = None
        if wanted.metadata is not None:
            keys = _lookup_keys(*wanted.metadata)
        size = limit + 1
        if wanted.min_bytes is not None:
            size = max(size, STEP_BY_SIZE)
        elif keys is not None:
            size = max(size, STEP_BY_METADATA)
        elif pattern is not None:
            size = max(size, STEP)
        since, until = _sql_time(wanted.saved_after), _sql_time(wanted.saved_before)
        step = self.sql.looking.step(self._tenant, behind, since, until, size)
        (found,) = yield Batch.query(
            self.sql.looking.threads(
                self._tenant, step, pattern=pattern, keys=keys, min_bytes=wanted.min_bytes, limit=limit
            )
        )
        if not found.rows:
            return Page(())
        end = next(row for row in found.rows if row[1] is None)
        rows = sorted((row for row in found.rows if row is not end), key=lambda row: (row[2], row[0]), reverse=True)
        items = [self._thread_row(row) for row in rows]
        if wanted.metadata is not None:
            items = [item for item in items if _holds(item.metadata, *wanted.metadata)]
        last = None
        if len(rows) == limit:
            last = rows[-1]
            if last[0] == end[0] and cast(int, end[5]) < size:
                last = None
        elif cast(int, end[5]) == size:
            last = end
        return Page(items, None if last is None else to_cursor(_stamp(last[2]), cast(str, last[0])))

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """See `ThreadSource.thread`. One round trip."""
        one = self.sql.looking.one(self._tenant, check_thread_id(thread_id))
        (found,) = yield Batch.query(self.sql.looking.threads(self._tenant, one, limit=1))
        return self._thread_row(found.rows[0]) if len(found.rows) > 1 else None

    def history(self, thread_id: str, limit: int, cursor: str | None) -> Operation[Page[CheckpointRow]]:
        """See `ThreadSource.history`. One round trip."""
        check_thread_id(thread_id)
        limit = check_limit(limit, least=1)
        before = None if cursor is None else cast(int, from_cursor(cursor, int)[0])
        (found,) = yield Batch.query(self.sql.looking.history(self._tenant, thread_id, before, limit + 1))
        items = [_checkpoint_row(thread_id, row[1:]) for row in found.rows[:limit]]
        more = len(found.rows) > limit
        return Page(items, to_cursor(cast(int, found.rows[limit - 1][0])) if more else None)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None
    ) -> Operation[StateView | None]:
        """See `ThreadSource.state`. One round trip."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        if namespace:
            return None
        (found,) = yield Batch.query(self.sql.looking.state(self._tenant, thread_id, checkpoint_id, _sql_time(at)))
        if not found.rows:
            return None
        checkpoint = _checkpoint_row(thread_id, found.rows[0][:5])
        try:
            encoded, _ = assemble_rows([row[5:] for row in found.rows], thread_id)
            state = decode_state_text(encoded.text(), thread_id)
        except CorruptCheckpoint as error:
            return StateView(self.family, thread_id, checkpoint, (), {}, damage=str(error))
        return StateView(self.family, thread_id, checkpoint, messages_of(state), state)

    def turns(self, thread_id: str, limit: int) -> Operation[list[Turn]]:
        """See `ThreadSource.turns`."""
        raise NotImplementedError
        yield

    def search(self, query: str, limit: int) -> Operation[list[Hit]]:
        """See `ThreadSource.search`."""
        raise NotImplementedError
        yield

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """See `ThreadSource.by_metadata`."""
        raise NotImplementedError
        yield

    def statistics(self) -> Operation[Statistics]:
        """See `ThreadSource.statistics`."""
        raise NotImplementedError
        yield

    def markers(self, thread_ids: Sequence[str]) -> Statement:
        """See `ThreadSource.markers`."""
        return self.sql.looking.markers(self._tenant, thread_ids)

    def _thread_row(self, row: Row) -> ThreadRow:
        """Made from a row of the statement `threads`."""
        thread_id, created_at, updated_at, checkpoint_id, text, checkpoints, size = row
        if checkpoint_id is None:
            metadata: dict[str, Any] = {}
            damage: str | None = f"Thread {thread_id!r} has no checkpoint, which no write leaves behind. Delete it."
        else:
            metadata, damage = _metadata((thread_id, checkpoint_id, text, updated_at))
        return ThreadRow(
            family=self.family,
            thread_id=cast(str, thread_id),
            created_at=aware(created_at),
            updated_at=aware(updated_at),
            checkpoints=cast(int, checkpoints),
            size_bytes=int(cast(int, size or 0)),
            checkpoint_id=cast("str | None", checkpoint_id),
            metadata=metadata,
            damage=damage,
        )


def _checkpoint_row(thread_id: str, row: Row) -> CheckpointRow:
    """Made from a row of id, parent's id, time, bytes and metadata."""
    checkpoint_id, parent_id, created_at, size, text = row
    metadata, damage = _metadata((thread_id, checkpoint_id, text, created_at))
    return CheckpointRow(
        namespace="",
        checkpoint_id=cast(str, checkpoint_id),
        parent_id=cast("str | None", parent_id),
        created_at=aware(created_at),
        size_bytes=cast(int, size),
        metadata=metadata,
        damage=damage,
    )


def _metadata(row: Row) -> tuple[dict[str, Any], str | None]:
    """The metadata in a row of thread, id, metadata and time; or none, and what is wrong with it."""
    try:
        return checkpoint_info(row)["metadata"], None
    except CorruptCheckpoint as error:
        return {}, f"{error} The state may be whole: load it, and save it again with its metadata."


def _lookup_keys(key: str, value: Any) -> str:
    encode_metadata({check_text(key, "Metadata key"): value})
    return json.dumps(lookup_keys(key, value))


def _holds(metadata: Any, key: str, value: Any) -> bool:
    return key in metadata and contains(metadata[key], value)


def _stamp(value: object) -> str:
    return as_sql_time(aware(value))


def _sql_time(value: datetime | None) -> str | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise InvalidInput(f"The time {value.isoformat()} has no time zone. Give one, such as tzinfo=UTC.")
    return as_sql_time(value)
