"""The storage, the session repository and the memory store of Strands Agents on MySQL.

Converts the framework's bytes, sessions and memories, and leaves storage to `families/checkpoints`,
`families/transcripts` and `families/memories`. Begin with `storage`, `sessions` and `memories`, the public classes,
then with their operations.
"""

from ...extras import need

need("strands", "Strands Agents", "strands")

from .memories import StrandsMemoryStore
from .sessions import StrandsSessionRepository
from .storage import StrandsStorage

__all__ = ["StrandsMemoryStore", "StrandsSessionRepository", "StrandsStorage"]
