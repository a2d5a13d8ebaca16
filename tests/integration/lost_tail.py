"""`Tables`: restores tables to an earlier state, like a server that loses its newest commits while clients run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

RunSQL: TypeAlias = Callable[..., tuple[Any, ...]]

#: The rows of each table, by its name.
Moment: TypeAlias = dict[str, tuple[Any, ...]]


class Tables:
    """Copies the tables of a schema, and restores them like a failover to a lagging replica, or like a backup.

    Restoring also resets the AUTO_INCREMENT counters, so that the server assigns the same numbers again.

    Args:
        run_sql: Runs a statement as the administrator.
        database: The schema.
    """

    def __init__(self, run_sql: RunSQL, database: str) -> None:
        self._run_sql = run_sql
        self._database = database

    def note(self) -> Moment:
        """Return all current rows."""
        names = [name for (name,) in self._run_sql(f"SHOW TABLES FROM {self._database}")]
        return {
            name: self._run_sql(f"SELECT {', '.join(self._columns(name))} FROM {self._database}.{name}")
            for name in names
        }

    def put_back(self, moment: Moment) -> None:
        """Replace all rows with those of an earlier moment."""
        for name, rows in moment.items():
            self._run_sql(f"DELETE FROM {self._database}.{name}")
            columns = self._columns(name)
            for row in rows:
                self._run_sql(
                    f"INSERT INTO {self._database}.{name} ({', '.join(columns)})"
                    f" VALUES ({', '.join(['%s'] * len(columns))})",
                    *row,
                )
            if self._numbered(name):
                self._run_sql(f"ALTER TABLE {self._database}.{name} AUTO_INCREMENT = 1")

    def _columns(self, name: str) -> list[str]:
        found = self._run_sql(f"SHOW COLUMNS FROM {self._database}.{name}")
        return [f"`{column[0]}`" for column in found if "GENERATED" not in column[5].replace("DEFAULT_GENERATED", "")]

    def _numbered(self, name: str) -> bool:
        found = self._run_sql(f"SHOW COLUMNS FROM {self._database}.{name}")
        return any("auto_increment" in column[5] for column in found)
