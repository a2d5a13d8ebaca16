"""`Side`: a process with the operations of every family, and the types of the cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from locus_mysql.config import MySQLConfig
from locus_mysql.engine.operation import Operation
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.families.graphs.operations import GraphOperations
from locus_mysql.families.working.storages.mysql import WorkingOperations
from locus_mysql.integrations.memu.operations import MemuStore
from locus_mysql.integrations.memu.records import DefaultUserModel

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
