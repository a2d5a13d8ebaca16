"""`Tampering`: changes rows as an attacker with the server's rights would."""

from __future__ import annotations

from typing import Any

from locus_mysql.dialect.resealing import SealedColumn

from ..encryption.conftest import RunSQL


class Tampering:
    """Changes sealed bytes.

    Args:
        run_sql: Runs a statement as the administrator.
        database: The schema.
    """

    def __init__(self, run_sql: RunSQL, database: str) -> None:
        self._run, self._database = run_sql, database

    def rows(self, column: SealedColumn) -> list[dict[str, Any]]:
        """Return the rows whose column holds something."""
        names = [name for name in column.columns if name != "base"]
        found = self._run(f"SELECT {', '.join(names)} FROM {self._database}.`{column.table}`")
        rows = [dict(zip(names, values, strict=True)) for values in found]
        for row in rows:
            if isinstance(row["tenant"], bytes):  # on OceanBase
                row["tenant"] = row["tenant"].decode()
            if column.owner_table is not None:
                link = column.owner_table.link
                (owner,) = self._run(
                    f"SELECT {', '.join(column.owner)} FROM {self._database}.`{column.owner_table.table}` WHERE "
                    + " AND ".join(f"{name} = %s" for name in link),
                    *(row[name] for name in link),
                )
                row |= dict(zip(column.owner, owner, strict=True))
        return [row for row in rows if row[column.column]]

    def put(self, column: SealedColumn, row: dict[str, Any], content: bytes) -> None:
        """Put bytes into a row."""
        where = " AND ".join(f"{name} = %s" for name in column.key)
        key = [row[name] for name in column.key]
        table = f"{self._database}.`{column.table}`"
        self._run(f"UPDATE {table} SET {column.column} = %s WHERE {where}", content, *key)
