"""The public names of working memory.

Only an import path for users: the code is in `locus_mysql.families.working`, where reading begins.
"""

from .families.working.calls import CheckpointInfo, Limits
from .families.working.records import SessionStats, TaskState
from .families.working.storages.fallback import FallbackStorage
from .families.working.storages.in_memory import InMemoryStorage
from .families.working.storages.interface import Storage
from .families.working.storages.mysql import MySQLStorage
from .families.working.storages.redis import RedisStorage
from .families.working.store import SyncWorkingMemory, WorkingMemory
from .families.working.values import MISSING

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
