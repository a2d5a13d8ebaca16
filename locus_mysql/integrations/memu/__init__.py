"""memU's stores in MySQL, by the protocols of memU 1.5.1 and of memu-cli. Imports nothing from memU.

Begin with `database`, the public classes, then `operations` and `statements`; `items` (with categories and relations)
has memU's repositories, and `recall_files` (with segments and resources) those of memu-cli; `transfer` and `copying`
move records.
"""

from ...transfer.engine import TransferReport
from .copying import copy_database
from .database import (
    AsyncMemuDatabase,
    AsyncRecallDatabase,
    MemuDatabase,
    RecallDatabase,
    build_async_mysql_database,
    build_async_recall_database,
    build_mysql_database,
    build_recall_database,
)
from .records import (
    CategoryItem,
    DefaultUserModel,
    MemoryCategory,
    MemoryItem,
    RecallFile,
    RecallFileSegment,
    RecallUserModel,
    Resource,
    WorkspaceResource,
)

__all__ = [
    "AsyncMemuDatabase",
    "AsyncRecallDatabase",
    "CategoryItem",
    "DefaultUserModel",
    "MemoryCategory",
    "MemoryItem",
    "MemuDatabase",
    "RecallDatabase",
    "RecallFile",
    "RecallFileSegment",
    "RecallUserModel",
    "Resource",
    "TransferReport",
    "WorkspaceResource",
    "build_async_mysql_database",
    "build_async_recall_database",
    "build_mysql_database",
    "build_recall_database",
    "copy_database",
]
