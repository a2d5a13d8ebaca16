"""The memory of AI agents in MySQL. The public names; each is imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoints.store import CheckpointStore, SyncCheckpointStore
    from .config import MySQLConfig
    from .database.database import Database
    from .drivers.registry import register_driver
    from .errors import LocusMySQLError
    from .integrations.locus.backend import MySQLBackend, SyncMySQLBackend
    from .integrations.locus.checkpointer import (
        MySQLCheckpointer,
        SyncMySQLCheckpointer,
        mysql_checkpointer,
        register,
    )
    from .versions.saver import MySQLCheckpointSaver, SyncMySQLCheckpointSaver

__version__ = "0.1.0"

_HOMES = {
    "CheckpointStore": ".checkpoints.store",
    "Database": ".database.database",
    "LocusMySQLError": ".errors",
    "MySQLBackend": ".integrations.locus.backend",
    "MySQLCheckpointSaver": ".versions.saver",
    "MySQLCheckpointer": ".integrations.locus.checkpointer",
    "MySQLConfig": ".config",
    "SyncCheckpointStore": ".checkpoints.store",
    "SyncMySQLBackend": ".integrations.locus.backend",
    "SyncMySQLCheckpointSaver": ".versions.saver",
    "SyncMySQLCheckpointer": ".integrations.locus.checkpointer",
    "mysql_checkpointer": ".integrations.locus.checkpointer",
    "register": ".integrations.locus.checkpointer",
    "register_driver": ".drivers.registry",
}

__all__ = [
    "CheckpointStore",
    "Database",
    "LocusMySQLError",
    "MySQLBackend",
    "MySQLCheckpointSaver",
    "MySQLCheckpointer",
    "MySQLConfig",
    "SyncCheckpointStore",
    "SyncMySQLBackend",
    "SyncMySQLCheckpointSaver",
    "SyncMySQLCheckpointer",
    "__version__",
    "mysql_checkpointer",
    "register",
    "register_driver",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
