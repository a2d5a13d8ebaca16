"""What handlers use: `Services`."""

from __future__ import annotations

import asyncio

from ..database.database import Database
from ..memories.store import MemoryStore
from ..working.memory import WorkingMemory


class Services:
    """The stores of each tenant, on one `Database`.

    Args:
        database: The database.
        allow_writes: Whether the pages may change anything.
        vacuum: Whether the API may remove old checkpoints.
    """

    def __init__(self, database: Database, *, allow_writes: bool = False, vacuum: bool = False) -> None:
        self.database = database
        self.allow_writes = allow_writes
        self.vacuum = vacuum
        #: Set when the service is asked to stop: what would go on for ever, such as a stream of events, ends then.
        self.stopping = asyncio.Event()

    def memories(self, tenant: str) -> MemoryStore:
        """The long-term memories of a tenant."""
        return MemoryStore(self.database, tenant=tenant)

    def working(self, tenant: str, session_id: str) -> WorkingMemory:
        """A session of a tenant."""
        return WorkingMemory(session_id, self.database, tenant=tenant)
