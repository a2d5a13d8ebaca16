"""Transcripts as a source and a target of transfers. A line is a transcript, or one of its items, which follow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...errors import InvalidInput
from ...runtime.checksummed_jsonl import Head, checksummed, checksummed_text
from ...runtime.database import Database
from ...runtime.exact_json import decode_json, encode_json
from ...runtime.sealing import fetching_keys, refuse_clear_tables
from ...runtime.server_times import from_text
from ...runtime.transfer import RecordPage, TransferReport
from ..family import refuse_others
from .coding import ID_BYTES, check_name, check_optional, encode_exactly, row_key
from .maintenance import TranscriptMaintenance
from .moving import Kept, KeptHeader, KeptItem, MovingOperations, Position
from .records import TranscriptKey

T = TypeVar("T")

#: The format in the first line.
FORMAT = "locus-mysql transcripts 1"

_OF_HEADER = {"revision", "tag", "scope", "state", "created_at", "expires_at"}
_OF_HEADER_WITH_LAST_SEQ = _OF_HEADER | {"last_seq"}  # earlier exports lack it
_OF_ITEM = {"seq", "id", "content", "created_at"}

_LARGEST = 2**63 - 1


class TranscriptTransfer:
    """Exports and imports transcripts. See `Transfer`.

    Args:
        config: The options, with the tenant.
    """

    noun = "record"

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config

    def source(self, **selection: Any) -> TranscriptSource:
        """Return the source that reads all transcripts with their items."""
        refuse_others(selection, "transcripts")
        return TranscriptSource(self._config)

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT

    def target(self, head: Head, *, overwrite: bool = False) -> TranscriptTarget:
        """See `Transfer.target`."""
        return TranscriptTarget(self._config, overwrite=overwrite)


class TranscriptSource:
    """Reads transcripts in the order of their keys, each before its items.

    Args:
        config: The options, with the tenant.
    """

    constants = True

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        self.head = checksummed({"format": FORMAT, "tenant": config.tenant})

    def position_of(self, content: Mapping[str, Any]) -> Position:
        """Return the position of the record in a line."""
        return record_of(content).position

    async def count(self, database: Database) -> int:
        """Return the number of transcripts and items together."""
        transcripts, items, _ = await self._run(database, TranscriptMaintenance(self._config).stored())
        return transcripts.number + items.number

    async def page(self, database: Database, after: Position | None, limit: int) -> RecordPage:
        """Return some records."""
        page = RecordPage()
        for record in await self._run(database, self._moving.page(after, limit)):
            page.last = record.position
            if record.damaged:
                page.damaged.append(f"{describe(record)} cannot be read: it was changed or moved.")
            else:
                page.records.append(line_of(record))
        return page

    async def _run(self, database: Database, operation: Operation[T]) -> T:
        steps = fetching_keys(operation, self._config)
        return await database.asynchronous.run(steps, self._moving.schema, self._config.ddl_mode)


class TranscriptTarget:
    """Writes transcripts and items.

    Args:
        config: The options, with the tenant.
        overwrite: Whether records that differ in the tables are replaced.
    """

    constants = True

    def __init__(self, config: MySQLConfig, *, overwrite: bool) -> None:
        self._config = config
        self._moving = MovingOperations(config)
        refuse_clear_tables(config, self._moving.schema)
        self._overwrite = overwrite

    def read(self, content: Mapping[str, Any]) -> Kept:
        """Return the record in a line."""
        return record_of(content)

    async def write(self, database: Database, records: Sequence[Kept], report: TransferReport) -> None:
        """Write records that are missing, and compare the others."""
        restoring = fetching_keys(self._moving.restore(records, overwrite=self._overwrite), self._config)
        done = await database.asynchronous.run(restoring, self._moving.schema, self._config.ddl_mode)
        report.copied += done.written
        report.present += done.present
        for what in done.differing:
            report.differ(f"{what} differs in the tables. --overwrite replaces it.")
        for what in done.orphans:
            report.leave_out(f"{what} is left out: the transcript itself does not exist.")


def line_of(record: Kept) -> bytes:
    """Return the line of a record."""
    names = dict(zip(("kind", "collection", "name", "part"), map(_text, record.names), strict=True))
    if isinstance(record, KeptItem):
        content = {"seq": record.seq, "id": _text(record.item_id), "content": decode_json(record.content)}
        return checksummed_text(encode_json({**names, **content, "created_at": _iso(record.created_at)}))
    content = {
        "revision": record.revision,
        "tag": _text(record.tag),
        "scope": _text(record.scope),
        "state": None if record.state is None else decode_json(record.state),
        "created_at": _iso(record.created_at),
        "expires_at": None if record.expires_at is None else _iso(record.expires_at),
        "last_seq": record.last_seq,
    }
    return checksummed_text(encode_json({**names, **content}))


def record_of(content: Mapping[str, Any]) -> Kept:
    """Return the record in a line.

    Raises:
        InvalidInput: It cannot be stored.
    """
    fields = set(content) - {"kind", "collection", "name", "part"}
    if len(content) - len(fields) != 4 or fields not in (_OF_HEADER, _OF_HEADER_WITH_LAST_SEQ, _OF_ITEM):
        raise InvalidInput("A line is a transcript or an item, with all fields of one.")
    key = TranscriptKey(content["kind"], content["collection"], content["name"], content["part"])
    names, created_at = row_key("", key)[1:], from_text(content["created_at"], "created_at")
    if fields == _OF_ITEM:
        item_id = content["id"]
        encoded_id = None if item_id is None else check_name(item_id, "The id of an item", ID_BYTES)
        text = encode_exactly(content["content"], "The item")
        return KeptItem(names, _number(content["seq"], "seq"), encoded_id, text, created_at)
    return KeptHeader(
        names,
        _number(content["revision"], "revision"),
        check_optional(content["tag"], "The tag", ID_BYTES),
        check_optional(content["scope"], "The scope"),
        None if content["state"] is None else encode_exactly(content["state"], "The state"),
        created_at,
        None if content["expires_at"] is None else from_text(content["expires_at"], "expires_at"),
        last_seq=_number(content.get("last_seq", 0), "last_seq", least=0),
    )


def describe(record: Kept) -> str:
    """Return a description of the record, for messages."""
    name = f"transcript {_text(record.names[2])!r}"
    return f"Item {record.seq} of {name}" if isinstance(record, KeptItem) else name.capitalize()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _number(value: Any, what: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
        raise InvalidInput(f"{what} must be a whole number from {least} to {_LARGEST}.")
    return value
