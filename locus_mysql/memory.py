"""Long-term memory, whole: the stores, what they take and give, and an embedder for tests and offline use.

`MemoryStore` and `SyncMemoryStore` are names of `locus_mysql` too; the rest is here only.
"""

from .errors import VersionConflict
from .memories.hashing import HashingEmbedder
from .memories.puts import STORE_TTL, Put
from .memories.records import Hits, MemoryHit, MemoryItem
from .memories.store import MemoryStore, SyncMemoryStore

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
