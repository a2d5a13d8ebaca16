"""Dumps of the tables of each family, as a version made and filled them: `write` and `load`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

#: A folder for each released version, with a file for each family.
FOLDER = Path(__file__).with_name("released")

RunSQL = Callable[..., Sequence[tuple[Any, ...]]]


def dumped(run_sql: RunSQL, database: str, tables: Sequence[str]) -> str:
    """Return the statements that create the tables as they are, with their rows.

    Args:
        run_sql: Runs one statement and returns its rows.
        database: The database of the tables.
        tables: Their names.
    """
    statements = []
    for table in tables:
        create = run_sql(f"SHOW CREATE TABLE `{database}`.`{table}`")[0][1]
        statements.append(re.sub(r" AUTO_INCREMENT=\d+", "", create))
        columns = run_sql(
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
            " AND GENERATION_EXPRESSION = '' ORDER BY ORDINAL_POSITION",
            database,
            table,
        )
        names = ", ".join(f"`{name}`" for name, _ in columns)
        for row in run_sql(f"SELECT {names} FROM `{database}`.`{table}` ORDER BY 1, 2, 3"):
            values = ", ".join(_literal(value, kind) for value, (_, kind) in zip(row, columns, strict=True))
            statements.append(f"INSERT INTO `{table}` ({names}) VALUES ({values})")
    return "".join(f"{statement};\n" for statement in statements)


def load(run_sql: RunSQL, database: str, text: str) -> None:
    """Create and fill the tables of a dump in a database."""
    for statement in text.split(";\n")[:-1]:
        run_sql(re.sub(r"^(CREATE TABLE|INSERT INTO) `", rf"\1 `{database}`.`", statement))


def _literal(value: Any, kind: str) -> str:
    """Return a value as a literal; text as bytes, which no character set of a session changes."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if value else "''"
    text = str(value)
    if not text:
        return "''"
    literal = f"0x{text.encode().hex()}"
    return f"CONVERT({literal} USING utf8mb4)" if kind == "json" else literal if kind != "datetime" else f"'{text}'"
