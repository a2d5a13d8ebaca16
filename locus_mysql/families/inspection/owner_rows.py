"""The rows of a family's owners, read as threads: `OwnerRows`, and their ids: `Naming`. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.sql import SQL
from ...engine.operation import Batch, Operation
from ...records.moving import Moving
from ...records.row_statements import beyond
from ...records.tables import Part, Row, Tables, path_of_key
from ...runtime.arguments import check_text, check_thread_id, tenant_of
from ...runtime.server_rows import aware
from .sources import time_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

#: Owners, each with the number of its parts and their bytes, and what the piece {MORE} adds of its newest part. Only
#: those of the page are joined.
OWNERS = SQL("""
SELECT {OWN_COLUMNS}, {ROWS}, {BYTES}{MORE}
  FROM (SELECT o.*
          FROM {TABLE} o{INDEX}
         WHERE o.tenant = :tenant AND {LIVE}{CONDITIONS}
         ORDER BY {BY}
         LIMIT :limit) AS o{NEWEST}
 ORDER BY {BY}
""")

#: The position of the last owner that a page examines; no row if there are fewer. Reads no more than an index.
END = SQL("""
SELECT {POSITION} FROM {TABLE} o{INDEX} WHERE o.tenant = :tenant{CONDITIONS} ORDER BY {BY} LIMIT 1 OFFSET :others
""")

#: The key of an owner after the tenant.
Key: TypeAlias = tuple[str | bytes, ...]


class Naming:
    """The ids of owners as threads.

    The id is the key; one of several columns as a path, see `path_of_key`.

    Args:
        tables: The family's tables.
    """

    def __init__(self, tables: Tables) -> None:
        self.columns = tables.owner.key
        kinds = tables.kinds(tables.owner)
        self._binary = tuple("BINARY" in kinds[one] for one in self.columns)
        #: The id in SQL.
        self.sql = path_of_key(self.columns) if len(self.columns) > 1 else f"o.{self.columns[0]}"

    def id_of(self, row: Row) -> str:
        """Return the id of an owner."""
        values = [text_of(row[one]) for one in self.columns]
        if len(values) == 1:
            return values[0]
        segments = values if values[-1] else values[:-1]
        return "/".join(one.replace("~", "~0").replace("/", "~1").replace("\0", "~2") for one in segments)

    def key_of(self, thread_id: str) -> Key | None:
        """Return the key of an id; None if no owner has such an id."""
        if len(self.columns) == 1:
            segments = [check_thread_id(thread_id)]
        else:
            check_text(thread_id, "Thread id")
            segments = [one.replace("~2", "\0").replace("~1", "/").replace("~0", "~") for one in thread_id.split("/")]
            if len(segments) == len(self.columns) - 1:
                segments.append("")
        if len(segments) != len(self.columns):
            return None
        return tuple(one.encode() if binary else one for one, binary in zip(segments, self._binary, strict=True))


class OwnerRows:
    """The owners of a family and one tenant, with the totals of their parts.

    Args:
        tables: The family's tables.
        config: The options.
        newest: The columns that a family adds, beginning with a comma, and the joins that they are of.
        index: A hint for the index of pages; empty if MySQL finds it.
    """

    def __init__(
        self, tables: Tables, config: MySQLConfig, newest: tuple[str, str] = ("", ""), index: str = ""
    ) -> None:
        self.tables = tables
        self.moving = Moving(tables, config)
        self.naming = Naming(tables)
        self.tenant = tenant_of(config)
        owner = tables.owner
        #: The column with the time of the last write, and whether it is a number of microseconds.
        self.written = owner.stamp or owner.recent or owner.updated
        self.in_us = "INT" in tables.kinds(owner)[self.written]
        #: Whether pages are in the order of the times; without an index of these they are in that of the keys.
        self.by_time = bool(owner.recent)
        #: The columns by which pages are ordered, all descending if `by_time`.
        self.position = (self.written, *owner.key) if self.by_time else owner.key
        version = ", ".join(f"HEX(o.{one})" for one in owner.version or owner.epoch or (self.written,))
        counted = [f"SUM({one.counted})" if one.counted else "COUNT(*)" for one in tables.parts[:1]]
        self.pieces = {
            "ID": self.naming.sql,
            "ROWS": f"o.{owner.rows}" if owner.rows else self._totals(tables.parts[:1], counted),
            "BYTES": f"o.{owner.size}"
            if owner.size
            else self._totals(tables.parts, [f"SUM({size_of(one)})" for one in tables.parts]),
            "BY": ", ".join(f"o.{one}{' DESC' if self.by_time else ''}" for one in self.position),
            "POSITION": ", ".join(f"o.{one}" for one in self.position),
            "CREATED": owner.created,
            "ABOUT": owner.about or (f"o.{owner.rows}" if owner.rows else "0"),
            "VERSION": f"CONCAT_WS('-', {version})",
            "INDEX": index,
            "MORE": newest[0],
            "NEWEST": newest[1],
        }

    def _totals(self, parts: Sequence[Part], totals: Sequence[str]) -> str:
        """Return the SQL of a total over the parts of an owner."""
        found = [
            f"(SELECT COALESCE({total}, 0) FROM `{self.tables.names[part.role]}` c WHERE {self.joined(part)})"  # noqa: S608 - names of tables
            for part, total in zip(parts, totals, strict=True)
        ]
        return " + ".join(found) or "0"

    def joined(self, part: Part) -> str:
        """Return the condition for the valid parts ``c`` of an owner ``o``."""
        same = " AND ".join(f"c.{one} = o.{one}" for one in ("tenant", *self.tables.link))
        since = "" if part.since is None else " AND c.{} >= o.{}".format(*part.since)
        return same + since + (f" AND c.{part.removed} = 0" if part.removed else "")

    def statement(self, statement: SQL, pieces: Mapping[str, str] | None = None, **values: Any) -> Statement:
        """Return a statement about owners."""
        return self.moving.sql.owners(statement, {**self.pieces, **(pieces or {})}, tenant=self.tenant, **values)

    def fetch(
        self, conditions: str, limit: int, pieces: Mapping[str, str] | None = None, **values: Any
    ) -> Operation[list[dict[str, Any]]]:
        """Return live owners, the last written first, each with ``:rows``, ``:bytes`` and ``:newest``."""
        conditions = conditions.replace("{BYTES}", self.pieces["BYTES"])
        (found,) = yield Batch.of(
            self.statement(OWNERS, {"CONDITIONS": conditions, **(pieces or {})}, limit=limit, **values)
        )
        end = len(self.moving.sql.owners.names)
        rows: Any = found.rows
        return [
            {
                **self.moving.sql.owners.row(row),
                ":rows": int(row[end]),
                ":bytes": int(row[end + 1]),
                ":newest": tuple(row[end + 2 :]),
            }
            for row in rows
        ]

    def end(self, conditions: str, examined: int, **values: Any) -> Operation[Row | None]:
        """Return the position of the last of a number of owners; None if there are fewer."""
        (found,) = yield Batch.of(self.statement(END, {"CONDITIONS": conditions}, others=examined - 1, **values))
        return self.tables.row(self.tables.owner, self.position, found.rows[0]) if found.rows else None

    def after(self, position: Row) -> tuple[str, dict[str, Any]]:
        """Return the condition for owners after a position, and its parameters."""
        return self._bound(position, "<" if self.by_time else ">", "after_")

    def until(self, position: Row) -> tuple[str, dict[str, Any]]:
        """Return the condition for owners up to a position, and its parameters."""
        return self._bound(position, ">=" if self.by_time else "<=", "end_")

    def _bound(self, position: Row, sign: str, prefix: str) -> tuple[str, dict[str, Any]]:
        first = f" AND o.{self.position[0]} {sign[0]}= :{prefix}{self.position[0]}"  # a range of the index
        values = {f"{prefix}{one}": self._param(position[one]) for one in self.position}
        return f"{first} AND {beyond(self.position, sign, prefix)}", values

    def _param(self, value: Any) -> Any:
        return self.time(aware(value)) if isinstance(value, datetime) else value

    def among(self, keys: Sequence[Key]) -> tuple[str, dict[str, Any]]:
        """Return the condition for some owners, and its parameters."""
        columns = ", ".join(f"o.{one}" for one in self.naming.columns)
        if not keys:
            return " AND FALSE", {}
        return f" AND (o.tenant, {columns}) IN (:keys)", {"keys": [(self.tenant, *key) for key in keys]}

    def written_us(self, row: Row) -> int:
        """Return the time of the last write in microseconds since 1970."""
        written = row[self.written]
        return int(written) if self.in_us else (aware(written) - _EPOCH) // _MICROSECOND

    def written_at(self, row: Row) -> datetime:
        """Return the time of the last write."""
        return _EPOCH + timedelta(microseconds=min(self.written_us(row), _MOST_US))

    def time(self, moment: datetime, less: timedelta = timedelta(0)) -> int | str:
        """Return a time as the column of the last write has it."""
        text = time_text(moment, less=less)
        return max(0, (moment - _EPOCH) // _MICROSECOND) if self.in_us else text


def size_of(part: Part) -> str:
    """Return the SQL expression of the bytes of a part ``c``."""
    return part.size or " + ".join(f"COALESCE(LENGTH(c.{one.column}), 0)" for one in part.sealed) or "0"


def text_of(value: Any) -> str:
    """Return a column of a key as text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
