"""Threads of graphs as a source and a target of transfers, and as lines of JSON: a checkpoint with its writes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, TypeVar

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...engine.retry import next_page
from ...errors import CheckpointExists, CorruptCheckpoint, InvalidInput
from ...runtime.arguments import check_text, check_thread_id
from ...runtime.checksummed_jsonl import Head, checksummed, checksummed_text
from ...runtime.database import Database
from ...runtime.exact_json import encode_json
from ...runtime.sealing import fetching_keys, refuse_clear_tables
from ...runtime.server_times import aware, from_text
from ...runtime.transfer import RecordPage, TransferReport
from ..family import refuse_others
from .moving import Damaged, KeptGraphCheckpoint, KeptValue, MovingOperations, StoredValues, difference
from .records import LoadedWrite
from .statements.moving import MarkRow
from .values import EncodedValue

#: The format in the first line.
FORMAT = "locus-mysql graphs 1"

_NEEDED = frozenset(("thread", "checkpoint", "seq", "ns", "parent", "created_at", "codec", "head", "values", "needs"))
_NAMES = _NEEDED | {"snapshots", "metadata", "run", "deleted", "writes"}
_ID_CHARACTERS = 512
_RUN_BYTES = 16

T = TypeVar("T")

#: Checkpoints that are read at a time, and the bytes of lines after which a page ends.
_AT_ONCE, _PAGE_BYTES = 20, 4_000_000


def head_line(tenant: str, threads: Sequence[str] | None, pattern: str) -> bytes:
    """Return the first line: the tenant, and the selection if not all threads are exported."""
    content: dict[str, Any] = {"format": FORMAT, "tenant": tenant}
    if threads is not None:
        content["threads"] = list(threads)
    if pattern != "*":
        content["pattern"] = pattern
    return checksummed(content)


def checkpoint_line(kept: KeptGraphCheckpoint) -> bytes:
    """Return the line of a checkpoint."""
    content: dict[str, Any] = {
        "thread": kept.thread_id,
        "checkpoint": kept.checkpoint_id,
        "seq": kept.seq,
        "ns": kept.ns,
        "parent": kept.parent_id,
        "created_at": kept.created_at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "codec": kept.codec,
        "head": _encoded(kept.head),
        "values": {
            name: {"label": value.label, **({} if value.encoded is None else _encoded(value.encoded))}
            for name, value in kept.values.items()
        },
        "needs": kept.needs,
    }
    if kept.snapshots:
        content["snapshots"] = sorted(kept.snapshots)
    if kept.metadata is not None:
        content["metadata"] = kept.metadata
    if kept.run_key is not None:
        content["run"] = kept.run_key.hex()
    if kept.hidden:
        content["deleted"] = True
    if kept.writes:
        content["writes"] = [
            {
                "task": write.task_id,
                "idx": write.idx,
                "channel": write.channel,
                "path": write.task_path,
                **_encoded(write.value),
            }
            for write in kept.writes
        ]
    return checksummed_text(encode_json(content))


def checkpoint_of_content(content: Mapping[str, Any]) -> KeptGraphCheckpoint:
    """Return the checkpoint in a line.

    Raises:
        InvalidInput: It cannot be stored.
    """
    if missing := sorted(_NEEDED - content.keys()):
        raise InvalidInput(f"The checkpoint lacks the field {missing[0]!r}.")
    if unknown := sorted(content.keys() - _NAMES):
        raise InvalidInput(f"A checkpoint has no field {unknown[0]!r:.50}; known are {', '.join(sorted(_NAMES))}.")
    parent = content["parent"]
    return KeptGraphCheckpoint(
        thread_id=check_thread_id(content["thread"]),
        seq=_number(content["seq"], "seq", 0, 2**63 - 1),
        ns=_text(content["ns"], "ns"),
        checkpoint_id=_text(content["checkpoint"], "checkpoint", _ID_CHARACTERS),
        parent_id=None if parent is None else _text(parent, "parent", _ID_CHARACTERS),
        created_at=from_text(content["created_at"], "created_at"),
        codec=_text(content["codec"], "codec"),
        head=_decoded(content["head"], "head"),
        values=_values(content["values"]),
        snapshots=frozenset(_text(one, "snapshots") for one in _list(content.get("snapshots", []), "snapshots")),
        needs=_number(content["needs"], "needs", 0, 2),
        metadata=None if content.get("metadata") is None else _text(content["metadata"], "metadata"),
        run_key=None if content.get("run") is None else _run(content["run"]),
        hidden=content.get("deleted") is True,
        writes=[_write(one) for one in _list(content.get("writes", []), "writes")],
    )


def _encoded(value: EncodedValue) -> dict[str, str]:
    """Return a value as JSON: as text if its bytes are UTF-8, else in base 64."""
    try:
        return {"kind": value.kind, "text": value.data.decode()}
    except UnicodeDecodeError:
        return {"kind": value.kind, "base64": base64.b64encode(value.data).decode()}


def _decoded(content: Any, what: str) -> EncodedValue:
    if isinstance(content, dict) and isinstance(content.get("kind"), str):
        if isinstance(content.get("text"), str):
            return EncodedValue(content["kind"], content["text"].encode())
        if isinstance(content.get("base64"), str):
            try:
                return EncodedValue(content["kind"], base64.b64decode(content["base64"], validate=True))
            except (ValueError, binascii.Error):
                pass
    raise InvalidInput(f"{what} must have a kind, and its bytes as text or base64.")


def _values(content: Any) -> dict[str, KeptValue]:
    if not isinstance(content, dict):
        raise InvalidInput("values must be an object.")
    values = {}
    for name, value in content.items():
        if not isinstance(value, dict) or "label" not in value:
            raise InvalidInput(f"The value {name!r:.50} must have a label.")
        own = "kind" in value
        values[name] = KeptValue(value["label"], _decoded(value, f"The value {name!r:.50}") if own else None)
    return values


def _write(content: Any) -> LoadedWrite:
    if not isinstance(content, dict):
        raise InvalidInput("A write must be an object.")
    return LoadedWrite(
        _text(content.get("task"), "task", _ID_CHARACTERS),
        _number(content.get("idx"), "idx", -(2**31), 2**31 - 1),
        _text(content.get("channel"), "channel"),
        _text(content.get("path"), "path"),
        _decoded(content, "A write"),
    )


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{what} must be a list.")
    return value


def _text(value: Any, what: str, limit: int = 2**24 - 1) -> str:
    if not isinstance(value, str) or len(value) > limit:
        raise InvalidInput(f"{what} must be text of at most {limit} characters.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} must be text without lone surrogates.") from None
    return value


def _number(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{what} must be a whole number from {least} to {most}.")
    return value


def _run(value: Any) -> bytes:
    try:
        key = bytes.fromhex(value)
    except (TypeError, ValueError):
        key = b""
    if len(key) != _RUN_BYTES:
        raise InvalidInput(f"run must be {_RUN_BYTES} bytes in hexadecimal.")
    return key


class GraphTransfer:
    """Exports and imports threads of graphs. See `Transfer`.

    Args:
        config: The options, with the tenant.
    """

    noun = "checkpoint"

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config

    def source(self, threads: Sequence[str] | None = None, pattern: str = "*", **others: Any) -> GraphSource:
        """Return the source that reads these threads, or those whose ids match a glob."""
        refuse_others(others, "graphs")
        return GraphSource(self._config, threads, pattern)

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT

    def target(self, head: Head, *, overwrite: bool = False) -> GraphTarget:
        """See `Transfer.target`."""
        if overwrite:
            raise InvalidInput("The file holds threads, whose checkpoints are not replaced (--overwrite).")
        return GraphTarget(self._config)


class GraphSource:
    """Reads checkpoints thread by thread in the order of their ids, those of a thread in the order of their saves.

    Args:
        config: The options, with the tenant.
        threads: Ids of the threads to read; None for all.
        pattern: Only threads whose ids match this glob.
    """

    constants = True

    def __init__(self, config: MySQLConfig, threads: Sequence[str] | None, pattern: str) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        self._named = None if threads is None else sorted({*map(check_thread_id, threads)})
        self._pattern = check_text(pattern, "Pattern")
        self.head = head_line(config.tenant, self._named, pattern)
        self._pending: list[str] = []
        self._thread: str | None = None
        self._last_thread = ""
        self._after = 0
        self._parents: StoredValues = {}

    def position_of(self, content: Mapping[str, Any]) -> tuple[str, int]:
        """Return the thread and the seq of the checkpoint in a line."""
        kept = checkpoint_of_content(content)
        return kept.thread_id, kept.seq

    async def count(self, database: Database) -> int:
        """Return the number of checkpoints."""
        if self._named is None:
            return await self._run(database, self._moving.count(self._pattern))
        return sum([len(await self._run(database, self._moving.marks(one))) for one in self._named])

    async def page(self, database: Database, after: tuple[str, int] | None, limit: int) -> RecordPage:
        """Return the lines after those of the last page. Only the first call uses the position."""
        if after is not None and self._thread is None and not self._last_thread:
            self._thread, self._after = after
        page, size = RecordPage(), 0
        while len(page.records) < limit and size < _PAGE_BYTES:
            if self._thread is None and not await self._next_thread(database):
                break
            assert self._thread is not None  # noqa: S101 - the line before found one
            reading = self._moving.page(self._thread, self._after, min(limit, _AT_ONCE), self._parents)
            found = await self._run(database, reading)
            for one in found:
                self._after = next_page(self._after, one.seq)
                page.last = (self._thread, one.seq)
                if isinstance(one, Damaged):
                    page.damaged.append(f"{one.error}")
                else:
                    page.records.append(checkpoint_line(one))
                    size += len(page.records[-1])
            if not found:
                self._last_thread, self._thread = self._thread, None
        return page

    async def _next_thread(self, database: Database) -> bool:
        """Go to the next thread; False after the last."""
        self._after, self._parents = 0, {}
        if self._named is not None:
            self._thread = next((one for one in self._named if one > self._last_thread), None)
            return self._thread is not None
        if not self._pending:
            self._pending = await self._run(database, self._moving.threads(self._last_thread, self._pattern))
        if not self._pending:
            return False
        self._thread = self._pending.pop(0)
        return True

    async def _run(self, database: Database, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await database.asynchronous.run(steps, self._moving.schema, self._config.ddl_mode)


class GraphTarget:
    """Writes checkpoints of graphs, each behind those that its thread has.

    Args:
        config: The options, with the tenant.
    """

    constants = True

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        refuse_clear_tables(config, self._moving.schema)
        self._thread: _ThreadImport | None = None

    def read(self, content: Mapping[str, Any]) -> KeptGraphCheckpoint:
        """Return the checkpoint in a line."""
        return checkpoint_of_content(content)

    async def write(self, database: Database, records: Sequence[KeptGraphCheckpoint], report: TransferReport) -> None:
        """Write checkpoints that are missing, and compare the others."""
        for kept in records:
            if self._thread is None or self._thread.thread_id != kept.thread_id:
                stored = await self._run(database, self._moving.marks(kept.thread_id))
                self._thread = _ThreadImport(kept.thread_id, self._moving, stored)
            message = await self._run(database, self._thread.write(kept, report))
            if message is not None:
                name = f"Checkpoint {kept.checkpoint_id!r} of thread {kept.thread_id!r}"
                report.leave_out(f"{name} was left out: {message}.")

    async def _run(self, database: Database, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await database.asynchronous.run(steps, self._moving.schema, self._config.ddl_mode)


class _ThreadImport:
    """A thread that is being read from a file, checkpoint by checkpoint.

    Args:
        thread_id: The thread.
        moving: The operations.
        stored: Its stored checkpoints.
    """

    def __init__(self, thread_id: str, moving: MovingOperations, stored: dict[bytes, MarkRow]) -> None:
        self.thread_id = thread_id
        self._moving = moving
        self._stored = stored
        self._unseen = {*stored}  # stored checkpoints that the file has not had yet
        self._refused: set[bytes] = set()

    def write(self, kept: KeptGraphCheckpoint, report: TransferReport) -> Operation[str | None]:
        """Write or compare a checkpoint; return why it was left out, or None."""
        message: str | None = None
        present = kept.key in self._stored
        if kept.parent_key in self._refused:
            message = "its parent was left out"
        elif present:
            message = yield from self._complete(kept)
        elif self._unseen:
            message = "the thread has newer checkpoints, and lacks it"
        else:
            message = yield from self._save(kept)
        self._unseen.discard(kept.key)
        if message is not None:
            self._refused.add(kept.key)
        elif present:
            report.present += 1
        else:
            report.copied += 1
        return message

    def _save(self, kept: KeptGraphCheckpoint) -> Operation[str | None]:
        try:
            yield from self._moving.save(kept)
        except (CheckpointExists, CorruptCheckpoint) as error:
            return str(error).rstrip(".")
        newest = max((mark.seq for mark in self._stored.values()), default=0)
        self._stored.update((yield from self._moving.marks(self.thread_id, newest)))
        return (yield from self._difference(kept)) if kept.key in self._stored else "it was deleted meanwhile"

    def _complete(self, kept: KeptGraphCheckpoint) -> Operation[str | None]:
        """Compare a stored checkpoint, and add what an import that was killed before did not write."""
        message = yield from self._difference(kept, writes=False)
        if message is not None:
            return message
        mark = self._stored[kept.key]
        if (aware(mark.created_at), bool(mark.hidden), mark.run_key) != (kept.created_at, kept.hidden, kept.run_key):
            yield from self._moving.mark(kept)
        found = yield from self._moving.load(self.thread_id, mark.seq)
        existing = {(write.task_id, write.idx) for write in found.loaded.writes}
        missing = [write for write in kept.writes if (write.task_id, write.idx) not in existing]
        yield from self._moving.put_writes(kept, missing)
        return None

    def _difference(self, kept: KeptGraphCheckpoint, *, writes: bool = True) -> Operation[str | None]:
        """Return how a stored checkpoint differs; None if it is identical."""
        try:
            found = yield from self._moving.load(self.thread_id, self._stored[kept.key].seq)
            parent = None
            mark = None if kept.parent_key is None else self._stored.get(kept.parent_key)
            if mark is not None and any(value.encoded is None for value in kept.values.values()):
                parent = (yield from self._moving.load(self.thread_id, mark.seq)).loaded
            what = difference(kept, found.loaded, parent)
        except CorruptCheckpoint as error:
            return str(error).rstrip(".")
        stored = sorted(found.loaded.writes, key=lambda write: (write.task_id, write.idx))
        if what is None and writes and sorted(kept.writes, key=lambda write: (write.task_id, write.idx)) != stored:
            what = "one of its writes"
        return None if what is None else f"{what} differs in the tables"
