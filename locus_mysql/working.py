"""The public names of working memory; each is imported when first used.

Only an import path for users: the code is in `locus_mysql.families.working`, where reading begins.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .families.working.calls import CheckpointInfo, Limits
    from .families.working.records import SessionStats, TaskState
    from .families.working.storages.fallback import FallbackStorage
    from .families.working.storages.in_memory import InMemoryStorage
    from .families.working.storages.interface import Storage
    from .families.working.storages.mysql import MySQLStorage
    from .families.working.storages.redis import RedisStorage
    from .families.working.store import SyncWorkingMemory, WorkingMemory
    from .families.working.values import MISSING

_HOMES = {
    "MISSING": ".families.working.values",
    "CheckpointInfo": ".families.working.calls",
    "FallbackStorage": ".families.working.storages.fallback",
    "InMemoryStorage": ".families.working.storages.in_memory",
    "Limits": ".families.working.calls",
    "MySQLStorage": ".families.working.storages.mysql",
    "RedisStorage": ".families.working.storages.redis",
    "SessionStats": ".families.working.records",
    "Storage": ".families.working.storages.interface",
    "SyncWorkingMemory": ".families.working.store",
    "TaskState": ".families.working.records",
    "WorkingMemory": ".families.working.store",
}

__all__ = [
    "MISSING",
    "CheckpointInfo",
    "FallbackStorage",
    "InMemoryStorage",
    "Limits",
    "MySQLStorage",
    "RedisStorage",
    "SessionStats",
    "Storage",
    "SyncWorkingMemory",
    "TaskState",
    "WorkingMemory",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __package__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
