"""`Services`: the stores that handlers use."""

from __future__ import annotations

import asyncio
from typing import cast

from starlette.requests import Request

from ..config import MySQLConfig, StoreKeywords, StoreOptions
from ..engine.bootstrap import has_own_tables
from ..families.family import Family
from ..families.memories.embedding import EmbedFunction
from ..families.memories.embedding_options import name_of_model
from ..families.memories.store import SyncMemoryStore
from ..families.working.store import SyncWorkingMemory
from ..inspection.blocking import SyncInspector
from ..inspection.inspector import Inspector
from ..integrations.locus.agent_states import AgentDictOperations, AgentDicts
from ..runtime.database import Database
from .problems import Problem


class Services:
    """The stores of each tenant, on one shared `Database`.

    Args:
        database: The database.
        config: The options of the stores; each caller has its own tenant.
        allow_writes: Whether the pages may change anything.
        vacuum: Whether the API may remove old checkpoints.
        embed: Embeds queries for searches in long-term memory by meaning.
        dims: The width of embeddings, those of requests included.
        model: The name of their model; by default that of ``embed``.
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
        model: str = "",
    ) -> None:
        self.database = database
        self.config = config
        given = {name: getattr(config, name) for name in config.model_fields_set & {*StoreOptions.model_fields}}
        self._options = cast(StoreKeywords, given)
        self.allow_writes = allow_writes
        self.vacuum = vacuum
        self.embed = embed
        self.dims = dims
        self.model = model or name_of_model(embed)
        #: Set when the service is being stopped. Endless answers, such as event streams, then end.
        self.stopping = asyncio.Event()
        #: Names of families whose tables are known to exist.
        self._existing: set[str] = set()
        self._agents = AgentDictOperations(config)
        self._agents.count_in(database.counters)
        #: By tenant. Their number is limited by the number of tokens.
        self._threads: dict[str, AgentDicts] = {}
        self._inspectors: dict[str, SyncInspector] = {}
        self._awaited_inspectors: dict[str, Inspector] = {}
        self.inspector(config.tenant)  # imports the families' modules

    def tables_exist(self, family: Family) -> bool:
        """Return whether the tables of a family exist; if not, the first write creates them.

        The database is queried until they exist.

        Raises:
            Problem: They do not exist, and the service may not create them.
        """
        if family.name in self._existing:
            return True
        if self.database.synchronous.run(has_own_tables(family.schema(self.config))):
            self._existing.add(family.name)
            return True
        if self.config.ddl_mode != "create":
            content = "threads" if family.holds_threads else family.title.lower()
            raise Problem(404, "not_kept", f"This service stores no {content}: the database has no tables for it.")
        return False

    def threads(self, tenant: str) -> AgentDicts:
        """Return the threads of a tenant's agents. All calls share its cache of threads."""
        if tenant not in self._threads:
            self._threads[tenant] = AgentDicts(self._agents.of_tenant(tenant), self.database)
        return self._threads[tenant]

    def inspector(self, tenant: str) -> SyncInspector:
        """Return the inspector of a tenant. All calls share its statements."""
        inspector = self._inspectors.get(tenant)
        if inspector is None:
            options = self._of(tenant)
            inspector = self._inspectors[tenant] = SyncInspector(
                self.database, embed=self.embed, dims=self.dims, model=self.model, **options
            )
        return inspector

    def awaited_inspector(self, tenant: str) -> Inspector:
        """Return the inspector of a tenant, for the event loop. All calls share its statements."""
        if tenant not in self._awaited_inspectors:
            self._awaited_inspectors[tenant] = Inspector(self.database, **self._of(tenant))
        return self._awaited_inspectors[tenant]

    def memories(self, tenant: str) -> SyncMemoryStore:
        """Return the long-term memories of a tenant."""
        return SyncMemoryStore(self.database, dims=self.dims, model=self.model, **self._of(tenant))

    def working(self, tenant: str, session_id: str, session_ttl_seconds: float | None = None) -> SyncWorkingMemory:
        """Return a session of a tenant, with the time to live for a session that begins now."""
        options = self._of(tenant)
        return SyncWorkingMemory(session_id, self.database, session_ttl_seconds=session_ttl_seconds, **options)

    def _of(self, tenant: str) -> StoreKeywords:
        return {**self._options, "tenant": tenant}


def services_of(request: Request) -> Services:
    """Return the services of the application."""
    return cast(Services, request.app.state.services)


def tenant_of(request: Request) -> str:
    """Return the tenant of the caller of a request."""
    return cast(str, request.state.caller.tenant)
