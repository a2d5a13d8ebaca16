"""Looking at the threads of LangGraph's graphs, and of other savers that keep every checkpoint. No I/O.

Values are shown without LangGraph and without making objects of what is stored; see `msgpack`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from ..config import MySQLConfig
from ..database.arguments import check_limit, check_text, check_thread_id
from ..database.matching import contains
from ..dialect.versions import VersionDialect
from ..dialect.versions.threads import LAG_S
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..errors import InvalidInput
from ..versions import keys
from ..versions.arguments import check_id
from ..versions.loading import Loading, aware
from ..versions.memory import VersionMemory
from ..versions.records import LoadedVersion, LoadedWrite
from ..versions.saver import DEFAULT_NAMESPACE
from ..versions.saver import SURFACE as SAVER
from .conversation import messages_of
from .plain import metadata_of, plain
from .records import CheckpointRow, Day, LargeThread, Page, PendingWrite, StateView, Statistics, ThreadRow

#: Threads of which a filtered page looks at most at so many; the next page goes on behind them.
LOOKED_AT = 2_000

#: Days, and large threads, that statistics tell of.
DAYS, LARGEST = 30, 20

_LEAST_LIFE = timedelta(hours=1)

#: The namespace of a graph itself; those of its subgraphs have names.
_ROOT = ""


class Graphs:
    """Looks at the threads of the family ``versions``.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.sql = VersionDialect(config.table_prefix)
        self.schema = self.sql.schema
        self._loading = Loading(self.sql, VersionMemory(0))

    def threads(
        self,
        tenant: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        pattern: str = "*",
        metadata: tuple[str, Any] | None = None,
        min_bytes: int | None = None,
        saved_after: datetime | None = None,
        saved_before: datetime | None = None,
    ) -> Operation[Page[ThreadRow]]:
        """Threads, newest first. One round trip, unless few of those looked at fit a filter.

        Args:
            tenant: Whose.
            limit: At most this many.
            cursor: Where the page before ended.
            pattern: A glob.
            metadata: A pair that the newest checkpoint's metadata must hold.
            min_bytes: Only threads of at least this size.
            saved_after: Only threads last saved then or later.
            saved_before: Only threads last saved earlier.
        """
        limit = check_limit(limit, least=1)
        check_text(pattern, "Pattern")
        behind = None if cursor is None else _behind(cursor)
        since = None if saved_after is None else _time(saved_after - timedelta(seconds=LAG_S))
        until = None if saved_before is None else _time(saved_before)
        root = keys.ns_key(_ROOT)
        found: list[ThreadRow] = []
        looked_at = 0
        while True:
            wanted = limit - len(found)
            filtered = metadata is not None or min_bytes is not None
            size = min(max(wanted, 200), LOOKED_AT) if filtered and looked_at else wanted
            (page,) = yield Batch.query(self.sql.looking.threads(tenant, root, size, pattern, behind, since, until))
            looked_at += len(page.rows)
            for row in page.rows:
                if len(found) == limit:
                    break
                behind = str(row[2]), cast(str, row[0])
                thread = _thread(row)
                if _fits(thread, metadata, min_bytes, saved_after, saved_before):
                    found.append(thread)
            else:
                if len(page.rows) < size:
                    behind = None
            if behind is None or len(found) == limit or looked_at >= LOOKED_AT:
                break
        found.sort(key=lambda thread: (thread.updated_at, thread.thread_id), reverse=True)
        return Page(found, None if behind is None else _cursor(*behind))

    def thread(self, tenant: str, thread_id: str) -> Operation[ThreadRow | None]:
        """One thread; None if there is none. One round trip."""
        check_thread_id(thread_id)
        (found,) = yield Batch.of(self.sql.looking.thread(tenant, keys.ns_key(_ROOT), thread_id))
        return _thread(found.rows[0]) if found.rows else None

    def history(
        self, tenant: str, thread_id: str, *, limit: int = 200, cursor: str | None = None
    ) -> Operation[Page[CheckpointRow]]:
        """A thread's checkpoints in all namespaces, the last one first. One round trip."""
        check_thread_id(thread_id)
        limit = check_limit(limit, least=1)
        before = None if cursor is None else _seq(cursor)
        (found,) = yield Batch.of(self.sql.looking.history(tenant, thread_id, limit, before))
        rows = found.rows
        return Page([_checkpoint(row) for row in rows], str(rows[-1][0]) if len(rows) == limit else None)

    def state(
        self, tenant: str, thread_id: str, checkpoint_id: str | None = None, *, namespace: str = ""
    ) -> Operation[StateView | None]:
        """A state as it was at a checkpoint, or at the newest of a namespace; None if there is none. Two round trips.

        Without a namespace, the one of savers that name it ``default`` is looked at as well.

        Raises:
            CorruptCheckpoint: It is damaged.
        """
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_id(checkpoint_id, "Checkpoint id")
        version, ns = None, namespace
        for ns in (namespace,) if namespace else (_ROOT, DEFAULT_NAMESPACE):
            version = yield from self._loading.load(tenant, thread_id, ns, checkpoint_id)
            if version is not None:
                break
        if version is None:
            return None
        version_key = keys.version_key(ns, version.checkpoint_id)
        (found,) = yield Batch.of(self.sql.looking.checkpoint(tenant, thread_id, keys.ns_key(ns), version_key))
        if not found.rows:
            return None  # it went meanwhile
        state = {name: plain(encoded) for name, encoded in version.values().items()}
        return StateView(
            family="versions",
            thread_id=thread_id,
            checkpoint=_checkpoint(found.rows[0]),
            messages=messages_of(state),
            state=state,
            writes=pending(version),
        )

    def statistics(self, tenant: str) -> Operation[Statistics]:
        """What a tenant keeps. Reads every row of the tenant."""
        results = yield Batch(
            (
                *self.sql.looking.totals(tenant),
                *self.sql.looking.days(tenant, DAYS),
                self.sql.looking.largest(tenant, LARGEST),
            ),
            atomic=False,
            feeds_no_save=True,
        )
        totals, beside, saved, begun, largest = (result.rows for result in results)
        threads, checkpoints, size_bytes = (_count(value) for value in totals[0])
        large = []
        for row in largest:
            thread = yield from self.thread(tenant, cast(str, row[0]))
            if thread is not None:
                life = max(thread.updated_at - thread.created_at, _LEAST_LIFE)
                large.append(LargeThread(thread, thread.size_bytes / (life / timedelta(days=1))))
        return Statistics(
            family="versions",
            threads=threads,
            checkpoints=checkpoints,
            size_bytes=size_bytes + sum(_count(value) for value in beside[0]),
            whole_bytes=None,
            days=_days(saved, begun),
            largest=large,
        )

    def changed(self, tenant: str, thread_ids: Sequence[str]) -> Operation[dict[str, str]]:
        """For each thread that is there what is another text after each change of it. One round trip."""
        if not thread_ids:
            return {}
        (found,) = yield Batch.query(self.sql.looking.markers(tenant, thread_ids))
        return {cast(str, row[0]): str(row[1]) for row in found.rows}


def pending(version: LoadedVersion) -> list[PendingWrite]:
    """What tasks wrote at a checkpoint, by the place and the id of the task, in the order of its writes."""
    ordered = sorted(version.writes, key=lambda write: (write.task_path, write.task_id, write.idx))
    return [found for write in ordered for found in _writes(write)]


def _writes(write: LoadedWrite) -> list[PendingWrite]:
    value = plain(write.value._replace(kind="json")) if write.value.kind == SAVER else plain(write.value)
    if write.value.kind == SAVER and not write.channel and isinstance(value, list):  # all that a task wrote
        pairs = [pair for pair in value if isinstance(pair, list) and len(pair) == 2]
        return [PendingWrite(write.task_id, str(channel), written) for channel, written in pairs]
    return [PendingWrite(write.task_id, write.channel, value)]


def _thread(row: Row) -> ThreadRow:
    thread_id, created_at, updated_at, saved_at, checkpoint_id, metadata, checkpoints, size_bytes = row
    times = [aware(time) for time in (updated_at, saved_at) if time is not None]
    return ThreadRow(
        family="versions",
        thread_id=cast(str, thread_id),
        created_at=aware(created_at),
        updated_at=max(times),
        checkpoints=_count(checkpoints),
        size_bytes=_count(size_bytes),
        checkpoint_id=cast("str | None", checkpoint_id),
        metadata=metadata_of(metadata),
    )


def _checkpoint(row: Row) -> CheckpointRow:
    _, ns, checkpoint_id, parent_id, created_at, size_bytes, metadata = row
    return CheckpointRow(
        namespace=cast(str, ns),
        checkpoint_id=cast(str, checkpoint_id),
        parent_id=cast("str | None", parent_id),
        created_at=aware(created_at),
        size_bytes=_count(size_bytes),
        metadata=metadata_of(metadata),
    )


def _fits(
    thread: ThreadRow,
    metadata: tuple[str, Any] | None,
    min_bytes: int | None,
    saved_after: datetime | None,
    saved_before: datetime | None,
) -> bool:
    """Whether a thread fulfils what was asked for."""
    if min_bytes is not None and thread.size_bytes < min_bytes:
        return False
    if saved_after is not None and thread.updated_at < saved_after:
        return False
    if saved_before is not None and thread.updated_at >= saved_before:
        return False
    if metadata is None:
        return True
    name, value = metadata
    return name in thread.metadata and contains(thread.metadata[name], value)


def _days(saved: Sequence[Row], begun: Sequence[Row]) -> list[Day]:
    """The last days on which something was saved, oldest first."""
    threads: Mapping[str, int] = {str(day): _count(count) for day, count in begun}
    days = [Day(str(day), threads.get(str(day), 0), _count(count), _count(size)) for day, count, size in saved]
    return days[::-1]


def _count(value: object) -> int:
    return int(cast(int, value))


def _time(value: datetime) -> str:
    """A time as SQL's text, in UTC.

    Raises:
        InvalidInput: It has no time zone.
    """
    if value.tzinfo is None:
        raise InvalidInput("A time needs its time zone, such as datetime.now(UTC).")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")


def _cursor(time: str, thread_id: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([time, thread_id]).encode()).decode().rstrip("=")


def _behind(cursor: str) -> tuple[str, str]:
    """The time and the id that a cursor tells.

    Raises:
        InvalidInput: It is none.
    """
    try:
        time, thread_id = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        return datetime.fromisoformat(time).isoformat(" "), str(thread_id)
    except (ValueError, TypeError):
        raise InvalidInput("The cursor is not one that this list gave.") from None


def _seq(cursor: str) -> int:
    """The number that a cursor of a history tells.

    Raises:
        InvalidInput: It is none.
    """
    if not cursor.isdecimal() or len(cursor) > 20:
        raise InvalidInput("The cursor is not one that this history gave.")
    return int(cursor)
