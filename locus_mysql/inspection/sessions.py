"""Looking at sessions of working memory on MySQL. Only reads: no session is renewed, and none is swept. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from ..config import MySQLConfig
from ..dialect.working.checkpoints import checkpoint_checksum
from ..dialect.working.dialect import WorkingDialect
from ..dialect.working.entries import entry_checksum
from ..dialect.working.template import NOTE, TASK, VARIABLE, SessionKey
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..families.graphs.loading import aware
from ..runtime.arguments import check_limit, check_session_id, check_text
from .cursors import from_cursor, to_cursor
from .msgpack import told_bytes
from .records import Page, SessionRow, SessionView
from .sources import PAGE_LIMIT
from .to_json import DAMAGED, finite

#: Stamps are of the server's clock, in microseconds; one that was damaged breaks no list.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


class Sessions:
    """Looks at the sessions of one tenant.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._sql = WorkingDialect(config.table_prefix)
        self.schema = self._sql.schema
        self._tenant = config.tenant

    def sessions(
        self, *, limit: int = 100, cursor: str | None = None, pattern: str = "*"
    ) -> Operation[Page[SessionRow]]:
        """Sessions in the order of their ids. One round trip.

        Args:
            limit: At most this many.
            cursor: Where the page before ended.
            pattern: A glob of session ids.
        """
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        after = "" if cursor is None else cast(str, from_cursor(cursor, str)[0])
        (found,) = yield Batch.query(
            self._sql.inspection.sessions(self._tenant, check_text(pattern, "Pattern"), after, limit)
        )
        rows = [_session(row) for row in found.rows]
        return Page(rows, to_cursor(rows[-1].session_id) if len(rows) == limit else None)

    def session(self, session_id: str) -> Operation[SessionView | None]:
        """All that a session holds, as it is at one moment; None if there is none, or it has expired."""
        key = SessionKey(self._tenant, check_session_id(session_id))
        one, entries, checkpoints = yield Batch(self._sql.inspection.session(key))
        if not one.rows:
            return None
        held: dict[int, dict[str, Any]] = {VARIABLE: {}, TASK: {}, NOTE: {}}
        for kind, name, value, _, _, stored in entries.rows:
            sound = stored == entry_checksum(key, cast(int, kind), cast(str, name), cast(bytes, value))
            held[cast(int, kind)][cast(str, name)] = _value(cast(bytes, value), sound=sound)
        task = next(iter(held[TASK].values()), None)
        return SessionView(
            session=_session(one.rows[0]),
            variables=held[VARIABLE],
            task_state=task if task is None or isinstance(task, Mapping) else {"damaged": str(task)},
            scratchpad=[_note(note) for note in held[NOTE].values()],
            checkpoints=[_checkpoint(key, row) for row in checkpoints.rows],
        )


def _session(row: Row) -> SessionRow:
    session_id, created_at, stamp, expires_at, variables, size_bytes = row
    return SessionRow(
        session_id=cast(str, session_id),
        created_at=aware(created_at),
        updated_at=_EPOCH + timedelta(microseconds=min(cast(int, stamp), _MOST_US)),
        expires_at=None if expires_at is None else aware(expires_at),
        variables=int(cast(int, variables)),
        size_bytes=int(cast(int, size_bytes)),
    )


def _checkpoint(key: SessionKey, row: Row) -> dict[str, Any]:
    checkpoint_id, label, created_at, variables, notes, size_bytes, stored = row
    sound = stored == checkpoint_checksum(key, cast(str, checkpoint_id), cast("str | None", label))
    return {
        "checkpoint_id": checkpoint_id,
        "label": label if sound else DAMAGED,
        "created_at": aware(created_at),
        "variables": int(cast(int, variables)),
        "notes": int(cast(int, notes)),
        "size_bytes": int(cast(int, size_bytes)),
    }


def _value(stored: bytes, *, sound: bool) -> Any:
    """The JSON of an entry; of what is none, what it is."""
    try:
        value = finite(json.loads(stored))
    except (ValueError, RecursionError):
        return told_bytes("damaged JSON", len(stored))
    return value if sound else DAMAGED


def _note(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
