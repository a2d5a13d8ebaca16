"""The memory of AI agents in MySQL. This module has the public names; each is imported when first used.

The folders are layers, drawn in docs/design/architecture.md: cli, server, inspection, integrations, families, records,
transfer, runtime, engine, drivers, dialect. Each imports only those below it. `config`, `encryption`, `errors`,
`extras`, `keywords`, `lru_cache`, `options`, `signals` and `wording` are for all; `embedded`, `memory`,
`transcripts` and `working` only give public names. Begin with docs/design/architecture.md, then `config` and `errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import MySQLConfig as MySQLConfig
    from .drivers.interface import register_driver as register_driver
    from .encryption import Encryption as Encryption
    from .errors import LocusMySQLError as LocusMySQLError
    from .families.checkpoints.preconditions import NO_CHECKPOINT as NO_CHECKPOINT
    from .families.checkpoints.preconditions import ThreadBranched as ThreadBranched
    from .families.checkpoints.store import CheckpointStore as CheckpointStore
    from .families.checkpoints.store import SyncCheckpointStore as SyncCheckpointStore
    from .families.graphs.store import MySQLCheckpointSaver as MySQLCheckpointSaver
    from .families.graphs.store import SyncMySQLCheckpointSaver as SyncMySQLCheckpointSaver
    from .families.memories.store import MemoryStore as MemoryStore
    from .families.memories.store import SyncMemoryStore as SyncMemoryStore
    from .families.migrating import migrate as migrate
    from .families.reencryption import reencrypt as reencrypt
    from .families.working.records import TaskState as TaskState
    from .families.working.store import SyncWorkingMemory as SyncWorkingMemory
    from .families.working.store import WorkingMemory as WorkingMemory
    from .integrations.locus.backend import MySQLBackend as MySQLBackend
    from .integrations.locus.backend import SyncMySQLBackend as SyncMySQLBackend
    from .integrations.locus.checkpointer import MySQLCheckpointer as MySQLCheckpointer
    from .integrations.locus.checkpointer import SyncMySQLCheckpointer as SyncMySQLCheckpointer
    from .integrations.locus.checkpointer import mysql_checkpointer as mysql_checkpointer
    from .integrations.locus.checkpointer import register as register
    from .integrations.locus.memory import MySQLMemory as MySQLMemory
    from .integrations.locus.memory import SyncMySQLMemory as SyncMySQLMemory
    from .integrations.locus.transfer import copy_threads as copy_threads
    from .integrations.locus.working import WorkingMemoryHook as WorkingMemoryHook
    from .integrations.locus.working import WorkingSessions as WorkingSessions
    from .integrations.locus.working import working_memory_tools as working_memory_tools
    from .runtime.database import Database as Database

__version__ = "0.1.0"

#: The public names by their modules.
_NAMES = {
    ".config": ("MySQLConfig",),
    ".drivers.interface": ("register_driver",),
    ".encryption": ("Encryption",),
    ".errors": ("LocusMySQLError",),
    ".families.checkpoints.preconditions": ("NO_CHECKPOINT", "ThreadBranched"),
    ".families.checkpoints.store": ("CheckpointStore", "SyncCheckpointStore"),
    ".families.graphs.store": ("MySQLCheckpointSaver", "SyncMySQLCheckpointSaver"),
    ".families.memories.store": ("MemoryStore", "SyncMemoryStore"),
    ".families.migrating": ("migrate",),
    ".families.reencryption": ("reencrypt",),
    ".families.working.records": ("TaskState",),
    ".families.working.store": ("SyncWorkingMemory", "WorkingMemory"),
    ".integrations.locus.backend": ("MySQLBackend", "SyncMySQLBackend"),
    ".integrations.locus.checkpointer": (
        "MySQLCheckpointer",
        "SyncMySQLCheckpointer",
        "mysql_checkpointer",
        "register",
    ),
    ".integrations.locus.memory": ("MySQLMemory", "SyncMySQLMemory"),
    ".integrations.locus.transfer": ("copy_threads",),
    ".integrations.locus.working": ("WorkingMemoryHook", "WorkingSessions", "working_memory_tools"),
    ".runtime.database": ("Database",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

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
