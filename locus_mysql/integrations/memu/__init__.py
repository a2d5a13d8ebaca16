"""memU's metadata store in MySQL, by the protocols of memU 1.5.1. Imports nothing of memU."""

from .build import build_async_mysql_database, build_mysql_database
from .copying import Copied, copy_database
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
    "Copied",
    "DefaultUserModel",
    "MemoryCategory",
    "MemoryItem",
    "MemuDatabase",
    "Resource",
    "build_async_mysql_database",
    "build_mysql_database",
    "copy_database",
]
