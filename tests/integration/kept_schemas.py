"""`KeptSchemas`: schemas whose tables are created once and reused by many tests, one after another."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Any

import pymysql

from locus_mysql import MySQLConfig
from locus_mysql.cli.tables import schemas
from locus_mysql.dialect.variants import variant_of

from .connecting import connect
from .engines import PROCESSLIST, run_statement

#: Limit in seconds for the server to end the connections of a finished test. After it, the test's schema is dropped.
GONE_S = 2.0


class KeptSchemas:
    """Schemas with the empty tables of some families, as the package creates them.

    Creating and dropping one family's tables takes the server 64 ms of CPU time, most of it for the full-text index;
    emptying them takes 3 ms. A schema is dropped instead of reused if it differs from a new one: a table was added or
    dropped, a definition was changed, a trigger was added, a full-text index contains text (it keeps entries of deleted
    rows), or a connection is still open and may write.

    Args:
        config: The server, and an administrator.
        connection: An administrator's connection.
    """

    def __init__(self, config: MySQLConfig, connection: pymysql.Connection[Any]) -> None:
        self._config = config
        self._connection = connection
        self._free: dict[frozenset[str], list[str]] = {}
        self._made: dict[str, dict[str, str]] = {}  # the definitions of the tables of each schema
        self._variant = variant_of(" ".join(self._run("SELECT VERSION(), @@version_comment")[0]))

    def lend(self, families: Iterable[str]) -> str:
        """Return the name of a schema with the tables of these families."""
        wanted = frozenset(families)
        if free := self._free.get(wanted):
            return free.pop()
        name = f"locus_test_{secrets.token_hex(8)}"
        self._run(f"CREATE DATABASE {name}")
        with connect(self._config, name) as connection, connection.cursor() as cursor:
            for family in sorted(wanted):
                for schema in schemas(self._config, [family]):
                    for statement in schema.create():
                        cursor.execute((self._variant.statement(statement) if self._variant else statement).sql)
        self._made[name] = self._definitions(name)
        return name

    def take_back(self, name: str, families: Iterable[str]) -> None:
        """Empty the tables of a schema, or drop it if it was changed."""
        if not self._is_as_made(name):
            del self._made[name]
            self._run(f"DROP DATABASE {name}")
            return
        for table in self._made[name]:
            self._run(f"DELETE FROM {name}.{table}")
        self._free.setdefault(frozenset(families), []).append(name)

    def drop(self) -> None:
        """Drop all schemas that no test holds."""
        for name in (name for names in self._free.values() for name in names):
            self._run(f"DROP DATABASE {name}")

    def _is_as_made(self, name: str) -> bool:
        end = time.monotonic() + GONE_S
        while self._run(f"SELECT 1 FROM {PROCESSLIST} WHERE db = %s LIMIT 1", name):
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        if self._definitions(name) != self._made[name] or self._run(f"SHOW TRIGGERS FROM {name}"):
            return False
        return not any(
            self._run(f"SELECT 1 FROM {name}.{table} WHERE search_text IS NOT NULL LIMIT 1")
            for table, definition in self._made[name].items()
            if "search_text" in definition
        )

    def _definitions(self, name: str) -> dict[str, str]:
        tables = [str(table) for (table,) in self._run(f"SHOW TABLES FROM {name}")]
        return {table: str(self._run(f"SHOW CREATE TABLE {name}.{table}")[0][1]) for table in tables}

    def _run(self, sql: str, *params: Any) -> tuple[Any, ...]:
        return run_statement(self._connection, sql, *params)
