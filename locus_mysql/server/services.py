"""What handlers use: `Services`."""

from __future__ import annotations

import asyncio
from typing import cast

from starlette.requests import Request

from ..config import MySQLConfig, StoreKeywords, StoreOptions
from ..families.memories.embedding import EmbedFunction
from ..families.memories.store import MemoryStore
from ..families.working.memory import WorkingMemory
from ..inspection.inspector import Inspector
from ..integrations.locus.dicts import AgentDictOperations, AgentDicts
from ..runtime.database import Database
from .change_poller import ChangePoller


class Services:
    """The stores of each tenant, on one `Database`.

    Args:
        database: The database.
        config: The options of its stores; the tenant is each caller's.
        allow_writes: Whether the pages may change anything.
        vacuum: Whether the API may remove old checkpoints.
        embed: Embeds what is looked for in long-term memory by meaning.
        dims: The width of its embeddings.
    """

    def __init__(
        self,
        database: Database,
        config: MySQLConfig,
        *,
        allow_writes: bool = False,
        vacuum: bool = False,
        embed: EmbedFunction | None = None,
        dims: int | None = None,
    ) -> None:
        self.database = database
        self.config = config
        given = {name: getattr(config, name) for name in config.model_fields_set & {*StoreOptions.model_fields}}
        self._options = cast(StoreKeywords, given)
        self.allow_writes = allow_writes
        self.vacuum = vacuum
        self.embed = embed
        self.dims = dims
        #: Set when the service is asked to stop: what would go on for ever, such as a stream of events, ends then.
        self.stopping = asyncio.Event()
        #: Families whose tables are known to be there.
        self.families: set[str] = set()
        self.pulse = ChangePoller(database)
        self._agents = AgentDictOperations(config)
        self._agents.count_in(database.counters)
        #: By tenant; there are no more of them than tokens.
        self._threads: dict[str, AgentDicts] = {}

    def threads(self, tenant: str) -> AgentDicts:
        """The threads of a tenant's agents. What the process remembers of threads is shared between all calls."""
        threads = self._threads.get(tenant)
        if threads is None:
            threads = self._threads[tenant] = AgentDicts(self._agents.of_tenant(tenant), self.database)
        return threads

    def inspector(self, tenant: str) -> Inspector:
        """What looks at all that a tenant keeps."""
        return Inspector(self.database, embed=self.embed, dims=self.dims, **self._of(tenant))

    def memories(self, tenant: str) -> MemoryStore:
        """The long-term memories of a tenant."""
        return MemoryStore(self.database, **self._of(tenant))

    def working(self, tenant: str, session_id: str, session_ttl_seconds: float | None = None) -> WorkingMemory:
        """A session of a tenant; with the time to live that it has if it begins now."""
        options = self._of(tenant)
        return WorkingMemory(session_id, self.database, session_ttl_seconds=session_ttl_seconds, **options)

    def _of(self, tenant: str) -> StoreKeywords:
        return {**self._options, "tenant": tenant}


def services_of(request: Request) -> Services:
    """The services that a request may use."""
    return cast(Services, request.app.state.services)


def tenant_of(request: Request) -> str:
    """Whose request it is."""
    return cast(str, request.state.caller.tenant)
