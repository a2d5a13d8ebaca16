"""Public names of long-term memory: stores, argument and result types, and an embedder for tests and offline use.

`MemoryStore` and `SyncMemoryStore` are names of `locus_mysql` too; the rest is here only.
"""

from .errors import VersionConflict
from .families.memories.hashing import HashingEmbedder
from .families.memories.puts import STORE_TTL, Put
from .families.memories.records import Hits, MemoryHit, MemoryItem
from .families.memories.store import MemoryStore, SyncMemoryStore

__all__ = [
    "STORE_TTL",
    "HashingEmbedder",
    "Hits",
    "MemoryHit",
    "MemoryItem",
    "MemoryStore",
    "Put",
    "SyncMemoryStore",
    "VersionConflict",
]
