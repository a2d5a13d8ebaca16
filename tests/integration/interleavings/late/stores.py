"""`Side`: a process with the operations of every family, and the types of the cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pymysql

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.engine.operation import Operation
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.families.graphs.operations import GraphOperations
from locus_mysql.families.working.storages.mysql import WorkingOperations
from locus_mysql.integrations.memu.operations import MemuStore
from locus_mysql.integrations.memu.records import DefaultUserModel

from ...engines import ENGINE
from ..stage import Call, Process, Stage

#: Begins the call whose packet is late.
Begin = Callable[["Stores"], Call]
#: Writes of other processes in the meantime.
Meanwhile = Callable[["Stores"], Any]
#: Prepares the stored data, and begins the call.
Case = tuple[Meanwhile | None, Begin]

TENANT = "default"
LONG = "word " * 3_000


class Stores:
    """A process, with the operations of every family.

    Args:
        stage: The stage that controls its calls.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.store = stage.store()
        config: MySQLConfig = self.store.store.config
        self._config = config
        self.working = WorkingOperations(config)
        self.turns = StoreOperations(config).turns
        self.memu = MemuStore(config.model_copy(update={"table_prefix": "memu_"}), DefaultUserModel, 1_000_000)
        self.begin_anew()

    @cached_property
    def saver(self) -> Process:
        """Return the process that saves graphs."""
        return self.stage.store("saver")

    @cached_property
    def memories(self) -> Process:
        """Return the process that stores memories."""
        return self.stage.store("memories")

    @cached_property
    def transcripts(self) -> Process:
        """Return the process that stores conversations."""
        return self.stage.store("transcripts")

    def create_tables(self, prefix: str, execute: Callable[[str], object]) -> None:
        """Create the tables whose names begin so."""
        match prefix:  # creating the process creates them, or they have none of their own
            case "locus_graph_":
                self.saver.count()
            case "locus_memory_":
                self.memories.count()
            case "locus_transcript":
                self.transcripts.count()
            case "locus_working_" | "memu_":
                schema = self.memu.schema if prefix == "memu_" else self.working.schema
                for statement in schema.create():
                    execute((OCEANBASE.statement(statement) if ENGINE == "oceanbase" else statement).sql)
            case _:
                self.store.count()

    def begin_anew(self) -> None:
        """Forget the created records."""
        self.made: Any = None
        self.graphs = GraphOperations(self._config)

    def begin(self, operation: Operation[Any]) -> Call:
        """Begin an operation of any family."""
        host = self.store.store
        return self.stage.begin(getattr(operation, "__name__", "operation"), host._run, (operation,), {})

    def run(self, operation: Operation[Any]) -> Any:
        """Run an operation from beginning to end."""
        return self.begin(operation).finish()


class Tables:
    """The tables of one family.

    Args:
        side: A process, which creates them.
        prefix: The prefix of their names.
        raw: A connection that has the schema selected.
    """

    def __init__(self, side: Stores, prefix: str, raw: pymysql.Connection[Any]) -> None:
        self._raw = raw
        raw.autocommit(True)
        side.create_tables(prefix, self._rows)
        self._names = [name for (name,) in self._rows("SHOW TABLES") if name.startswith(prefix)]
        assert self._names, f"there are no tables named {prefix}…"
        self._rows("SET FOREIGN_KEY_CHECKS = 0")

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table."""
        return {name: sorted(self._rows(f"SELECT * FROM {name}"), key=repr) for name in self._names}

    def empty(self) -> None:
        """Remove all rows."""
        for name in self._names:
            self._rows(f"DELETE FROM {name}")

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._raw.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
