"""Reads sessions of working memory on MySQL for the inspector. Renews and sweeps no session. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from ...config import MySQLConfig
from ...dialect.statement import like
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint, EncryptionError
from ...runtime.arguments import check_limit, check_session_id, check_text, tenant_of
from ...runtime.sealing import Sealing
from ...runtime.server_rows import aware
from ..inspection.msgpack import DAMAGED, describe_bytes, finite
from ..inspection.records import Page, SessionRow, SessionView
from ..inspection.sources import PAGE_LIMIT, from_cursor, to_cursor
from .content import NOTE, TASK, VARIABLE
from .family import Seals
from .statements import reading
from .statements.reading import CheckpointRow, InspectedSession
from .statements.tables import SessionKey, working_dialect

#: Bytes of the largest task state that a list reads.
LARGEST_TASK = 16_384

#: The latest stamp, in microseconds of the server's clock. Damaged stamps are limited to it, so lists stay readable.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


class Sessions:
    """Reads the sessions of one tenant.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._sql = working_dialect(config.table_prefix)
        self.schema = self._sql.schema
        self._tenant = tenant_of(config)
        self._sealing = Sealing(config.encryption, self.schema.family)

    def sessions(
        self, *, limit: int = 100, cursor: str | None = None, pattern: str = "*"
    ) -> Operation[Page[SessionRow]]:
        """Return sessions in the order of their ids. One round trip.

        Args:
            limit: The maximum number of results.
            cursor: The cursor of the previous page.
            pattern: A glob of session ids.
        """
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        after = "" if cursor is None else cast(str, from_cursor(cursor, str)[0])
        query = reading.SESSIONS(
            self._sql,
            pieces={"conditions": "" if check_text(pattern, "Pattern") == "*" else reading.LIKE},
            tenant=self._tenant,
            pattern=like(pattern),
            after=after,
            limit=limit,
            largest_task=LARGEST_TASK,
        )
        rows = [self._row(row) for row in (yield from fetch(query))]
        return Page(rows, to_cursor(rows[-1].session_id) if len(rows) == limit else None)

    def session(self, session_id: str) -> Operation[SessionView | None]:
        """Return a consistent view of a session and its content; None if it does not exist or has expired."""
        key = SessionKey(self._tenant, check_session_id(session_id))
        one, checkpoints = reading.INSPECTED(self._sql, key), reading.CHECKPOINTS(self._sql, key)
        entries = reading.ENTRIES(self._sql, key, pieces={"condition": reading.EVERYTHING})
        results = yield Batch((one, entries, checkpoints))
        found = results.row(one)
        if found is None:
            return None
        seals, now = Seals(self._sealing, key), datetime.now(UTC)
        content: dict[int, dict[str, Any]] = {VARIABLE: {}, TASK: {}, NOTE: {}}
        for row in sorted(results.rows(entries), key=lambda row: (row.kind, row.name)):
            expired = row.expires_us is not None and _EPOCH + timedelta(microseconds=row.expires_us) <= now
            if row.value is not None and not expired:
                content[row.kind][row.name] = _value(seals, row.kind, row.name, row.version, row.value)
        task = next(iter(content[TASK].values()), None)
        return SessionView(
            session=self._row(found),
            variables=content[VARIABLE],
            task_state=task if task is None or isinstance(task, Mapping) else {"damaged": str(task)},
            scratchpad=[_note(note) for note in content[NOTE].values()],
            checkpoints=[_checkpoint(seals, row) for row in reversed(results.rows(checkpoints))],
        )

    def _row(self, row: InspectedSession) -> SessionRow:
        return SessionRow(
            session_id=row.session_id,
            created_at=aware(row.created_at),
            updated_at=_EPOCH + timedelta(microseconds=min(row.stamp, _MOST_US)),
            expires_at=None if row.expires_at is None else aware(row.expires_at),
            variables=row.variables,
            size_bytes=row.size_bytes,
            task=self._task(row),
        )

    def _task(self, row: InspectedSession) -> Mapping[str, Any] | None:
        """Return the task state in a list; None if it is damaged."""
        if row.task is None or row.task_version is None:
            return None
        seals = Seals(self._sealing, SessionKey(self._tenant, row.session_id))
        try:
            value = _value(seals, TASK, "", row.task_version, row.task)
        except EncryptionError:
            return None
        return value if isinstance(value, Mapping) else None


def _checkpoint(seals: Seals, row: CheckpointRow) -> dict[str, Any]:
    checkpoint = seals.checkpoint(row)
    return {
        "checkpoint_id": row.checkpoint_id,
        "label": row.label if checkpoint.damage is None else DAMAGED,
        "created_at": checkpoint.info.created_at,
        "variables": row.variables,
        "notes": row.notes,
        "size_bytes": row.size_bytes,
    }


def _value(seals: Seals, kind: int, name: str, version: int, stored: bytes) -> Any:
    """Return the value of an entry; of a damaged entry, a text that says so."""
    try:
        text = seals.open(kind, name, version, stored)
    except CorruptCheckpoint:
        return DAMAGED
    try:
        return finite(json.loads(text))
    except (ValueError, RecursionError):
        return describe_bytes("damaged JSON", len(text))


def _note(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
