"""`damages`: damages every stored column in each way, one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pymysql

from ..thoroughness import FULL

RunSQL: TypeAlias = Callable[..., tuple[Any, ...]]


#: The number of rows damaged in each table. It starts at the last row, which builds on others; short runs leave out
#: every second row. Each damage is followed by all reads of a test.
MOST_ROWS = 4 if FULL else 2


@dataclass(frozen=True)
class Column:
    """A column that can be damaged."""

    name: str
    kind: str
    nullable: bool


@dataclass(frozen=True)
class Damage:
    """One damage to the tables, with a description for failure messages."""

    table: str
    column: str
    change: str
    row: int


def damages(run_sql: RunSQL, database: str, table: str) -> Iterator[Damage]:
    """Damage each column of each row of a table in turn, and restore the row after each damage.

    A value becomes NULL, gets one bit flipped, is truncated, or is swapped with that of another row.

    Args:
        run_sql: Runs a statement as the administrator.
        database: The schema.
        table: The table.
    """
    full_name = f"{database}.{table}"
    columns = [
        Column(name, kind, nullable == "YES")
        for name, kind, nullable, _, _, extra in run_sql(f"SHOW COLUMNS FROM {full_name}")
        if "VIRTUAL" not in extra and "STORED" not in extra
    ]
    key = [one[4] for one in run_sql(f"SHOW INDEX FROM {full_name} WHERE Key_name = 'PRIMARY'")]
    names = ", ".join(f"`{column.name}`" for column in columns)
    # Idempotency tokens of calls belong to no tenant.
    of_tenants = "WHERE tenant <> '' " if any(column.name == "tenant" for column in columns) else ""
    rows = run_sql(f"SELECT {names} FROM {full_name} {of_tenants}ORDER BY {', '.join(key)}")
    by_name = [dict(zip((column.name for column in columns), row, strict=True)) for row in rows]
    for column in columns:
        for number in range(len(by_name) - 1, -1, -1 if FULL else -2)[:MOST_ROWS]:
            row = by_name[number]
            old = row[column.name]
            for change, new in changed(old, column):
                if _set(run_sql, full_name, key, row, {column.name: new}):
                    yield Damage(table, column.name, change, number)
                    _set(run_sql, full_name, key, {**row, column.name: new}, {column.name: old})
            other = by_name[(number + 1) % len(by_name)]
            if other[column.name] != old and column.name not in key:
                _set(run_sql, full_name, key, other, {column.name: old})
                if _set(run_sql, full_name, key, row, {column.name: other[column.name]}):
                    yield Damage(table, column.name, "exchanged", number)
                _put_back(run_sql, full_name, names, rows)


def changed(old: Any, column: Column) -> Iterator[tuple[str, Any]]:
    """Yield damaged values of a column."""
    if column.nullable and old is not None:
        yield "NULL", None
    if isinstance(old, bytes) and old:
        # The form of the content, its seal, and the content.
        for at in sorted({0, 1, 5, len(old) // 2, len(old) - 1} if FULL else {0, 2, len(old) // 2}):
            if at < len(old):
                yield f"bit {at}", old[:at] + bytes([old[at] ^ 1 << at % 8]) + old[at + 1 :]
        if "binary" not in column.kind or column.kind.startswith("var"):
            yield "cut off", old[:-1]
            yield "empty", b""
    elif isinstance(old, str) and column.kind == "json":
        numbers = json.loads(old)
        yield "empty", "[]"
        if isinstance(numbers, dict):
            yield "another field", json.dumps({**numbers, "b": 7})
            yield "no fields", "{}"
        elif numbers:
            yield "other numbers", json.dumps([number + 1 for number in numbers])
            yield "no list", "5"
    elif isinstance(old, str):
        yield "longer", old + "x"
        yield "other", ("b" if old[:1] == "a" else "a") + old[1:]
        if old:
            yield "cut off", old[:-1]
    elif isinstance(old, int):
        yield "more", old + 1
        if old > 0:
            yield "less", old - 1


def _set(run_sql: RunSQL, full_name: str, key: list[str], row: dict[str, Any], values: dict[str, Any]) -> bool:
    """Change a row. Return False if the server rejects the change."""
    changes = ", ".join(f"`{name}` = %s" for name in values)
    which = " AND ".join(f"`{name}` = %s" for name in key)
    try:
        run_sql(f"UPDATE {full_name} SET {changes} WHERE {which}", *values.values(), *(row[name] for name in key))
    except (pymysql.err.IntegrityError, pymysql.err.DataError, pymysql.err.OperationalError):
        return False
    return True


def _put_back(run_sql: RunSQL, full_name: str, names: str, rows: tuple[Any, ...]) -> None:
    run_sql(f"DELETE FROM {full_name}")
    values = ", ".join([f"({', '.join(['%s'] * len(rows[0]))})"] * len(rows))
    run_sql(f"INSERT INTO {full_name} ({names}) VALUES {values}", *(value for row in rows for value in row))
