"""memU's metadata store in MySQL, by the protocols of memU 1.5.1. Imports nothing from memU.

A family with the usual file names, on `dialect/memu` and the layers below `integrations`. Begin with
`database`, the public classes, then `operations`; `items`, `categories`, `resources` and `relations` are memU's
repositories, `transfer` and `copying` move records.
"""

from ...runtime.transfer import TransferReport
from .build import build_async_mysql_database, build_mysql_database
from .copying import copy_database
from .database import AsyncMemuDatabase, MemuDatabase
from .records import (
    CategoryItem,
    DefaultUserModel,
    MemoryCategory,
    MemoryItem,
    Resource,
)

__all__ = [
    "AsyncMemuDatabase",
    "CategoryItem",
    "DefaultUserModel",
    "MemoryCategory",
    "MemoryItem",
    "MemuDatabase",
    "Resource",
    "TransferReport",
    "build_async_mysql_database",
    "build_mysql_database",
    "copy_database",
]
