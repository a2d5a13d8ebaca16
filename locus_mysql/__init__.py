"""The memory of AI agents in MySQL. This module has the public names; each is imported when first used.

The folders are layers, drawn in docs/design/architecture.md: cli, server, inspection, integrations, families, records,
transfer, runtime, engine, drivers, dialect. Each imports only those below it. `config`, `encryption`, `errors`,
`extras`, `keywords`, `lru_cache`, `options`, `signals` and `wording` are for all; `embedded`, `memory`,
`transcripts` and `working` only give public names. Begin with docs/design/architecture.md, then `config` and `errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import MySQLConfig
    from .drivers.interface import register_driver
    from .encryption import Encryption
    from .errors import LocusMySQLError
    from .families.checkpoints.preconditions import NO_CHECKPOINT, ThreadBranched
    from .families.checkpoints.store import CheckpointStore, SyncCheckpointStore
    from .families.graphs.store import MySQLCheckpointSaver, SyncMySQLCheckpointSaver
    from .families.memories.store import MemoryStore, SyncMemoryStore
    from .families.migrating import migrate
    from .families.reencryption import reencrypt
    from .families.working.records import TaskState
    from .families.working.store import SyncWorkingMemory, WorkingMemory
    from .integrations.locus.backend import MySQLBackend, SyncMySQLBackend
    from .integrations.locus.checkpointer import (
        MySQLCheckpointer,
        SyncMySQLCheckpointer,
        mysql_checkpointer,
        register,
    )
    from .integrations.locus.memory import MySQLMemory, SyncMySQLMemory
    from .integrations.locus.transfer import copy_threads
    from .integrations.locus.working import WorkingMemoryHook, WorkingSessions, working_memory_tools
    from .runtime.database import Database

    __all__ = [
        "NO_CHECKPOINT",
        "CheckpointStore",
        "Database",
        "Encryption",
        "LocusMySQLError",
        "MemoryStore",
        "MySQLBackend",
        "MySQLCheckpointSaver",
        "MySQLCheckpointer",
        "MySQLConfig",
        "MySQLMemory",
        "SyncCheckpointStore",
        "SyncMemoryStore",
        "SyncMySQLBackend",
        "SyncMySQLCheckpointSaver",
        "SyncMySQLCheckpointer",
        "SyncMySQLMemory",
        "SyncWorkingMemory",
        "TaskState",
        "ThreadBranched",
        "WorkingMemory",
        "WorkingMemoryHook",
        "WorkingSessions",
        "__version__",
        "copy_threads",
        "migrate",
        "mysql_checkpointer",
        "reencrypt",
        "register",
        "register_driver",
        "working_memory_tools",
    ]

__version__ = "0.1.0"

_HOMES = {
    "NO_CHECKPOINT": ".families.checkpoints.preconditions",
    "CheckpointStore": ".families.checkpoints.store",
    "Database": ".runtime.database",
    "Encryption": ".encryption",
    "LocusMySQLError": ".errors",
    "MemoryStore": ".families.memories.store",
    "MySQLBackend": ".integrations.locus.backend",
    "MySQLCheckpointSaver": ".families.graphs.store",
    "MySQLCheckpointer": ".integrations.locus.checkpointer",
    "MySQLConfig": ".config",
    "MySQLMemory": ".integrations.locus.memory",
    "SyncCheckpointStore": ".families.checkpoints.store",
    "SyncMemoryStore": ".families.memories.store",
    "SyncMySQLBackend": ".integrations.locus.backend",
    "SyncMySQLCheckpointSaver": ".families.graphs.store",
    "SyncMySQLCheckpointer": ".integrations.locus.checkpointer",
    "SyncMySQLMemory": ".integrations.locus.memory",
    "SyncWorkingMemory": ".families.working.store",
    "TaskState": ".families.working.records",
    "ThreadBranched": ".families.checkpoints.preconditions",
    "WorkingMemory": ".families.working.store",
    "WorkingMemoryHook": ".integrations.locus.working",
    "copy_threads": ".integrations.locus.transfer",
    "WorkingSessions": ".integrations.locus.working",
    "migrate": ".families.migrating",
    "mysql_checkpointer": ".integrations.locus.checkpointer",
    "register": ".integrations.locus.checkpointer",
    "reencrypt": ".families.reencryption",
    "register_driver": ".drivers.interface",
    "working_memory_tools": ".integrations.locus.working",
}

#: What needs the Locus SDK.
_OF_LOCUS = frozenset(
    {
        "MySQLCheckpointer",
        "MySQLMemory",
        "SyncMySQLCheckpointer",
        "SyncMySQLMemory",
        "WorkingMemoryHook",
        "copy_threads",
        "WorkingSessions",
        "mysql_checkpointer",
        "register",
        "working_memory_tools",
    }
)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _importable()
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _OF_LOCUS:
        from .integrations.locus_sdk import need_locus

        need_locus(f"locus_mysql.{name}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "__all__"})


def _importable() -> list[str]:
    """Return the names that ``from locus_mysql import *`` brings: without the Locus SDK, all but those that need it."""
    from .integrations.locus_sdk import need_locus

    try:
        need_locus("locus_mysql")
    except ImportError:
        return sorted({*_HOMES, "__version__"} - _OF_LOCUS)
    return sorted({*_HOMES, "__version__"})
