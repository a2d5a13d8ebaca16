"""Working memory: what an agent has in hand while it works. The public names; each is imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calls import Limits
    from .memory import SyncWorkingMemory, WorkingMemory
    from .records import CheckpointInfo, SessionStats, TaskState
    from .storages.fallback import FallbackStorage
    from .storages.in_memory import InMemoryStorage
    from .storages.interface import Storage
    from .storages.mysql import MySQLStorage
    from .storages.redis import RedisStorage
    from .values import MISSING

_HOMES = {
    "MISSING": ".values",
    "CheckpointInfo": ".records",
    "FallbackStorage": ".storages.fallback",
    "InMemoryStorage": ".storages.in_memory",
    "Limits": ".calls",
    "MySQLStorage": ".storages.mysql",
    "RedisStorage": ".storages.redis",
    "SessionStats": ".records",
    "Storage": ".storages.interface",
    "SyncWorkingMemory": ".memory",
    "TaskState": ".records",
    "WorkingMemory": ".memory",
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
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
