"""memU's stores in MySQL, by the protocols of memU 1.5.1 and of memu-cli. Imports nothing from memU.

A family with the usual file names, on `dialect/memu` and the layers below `integrations`. Begin with
`database` and `recall_database`, the public classes, then `operations`; `items`, `categories`, `resources` and
`relations` are memU's repositories, `resources`, `recall_files` and `segments` those of memu-cli, `transfer` and
`copying` move records.
"""

from ...runtime.transfer import TransferReport
from .build import (
    build_async_mysql_database,
    build_async_recall_database,
    build_mysql_database,
    build_recall_database,
)
from .copying import copy_database
from .database import AsyncMemuDatabase, MemuDatabase
from .recall_database import AsyncRecallDatabase, RecallDatabase
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
