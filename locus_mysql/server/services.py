"""`Services`: the stores that handlers use; and the blocking `Inspector`, whose coroutines `read` runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

from starlette.requests import Request

from ..config import MySQLConfig, StoreKeywords, StoreOptions
from ..dialect import Schema
from ..engine.bootstrap import DDLMode, has_own_tables
from ..engine.operation import Operation
from ..families.family import Family
from ..families.inspection.changes import OwnerChanges
from ..families.memories.embedding import EmbedFunction, EmbedTexts, embed_blocking, name_of_model
from ..families.memories.store import SyncMemoryStore
from ..families.registry import changes_of, find_family
from ..families.working.store import SyncWorkingMemory
from ..inspection.inspector import Inspector
from ..integrations.locus.agent_states import AgentDictOperations, AgentDicts
from ..options import classes_that_use
from ..runtime.arguments import tenant_of
from ..runtime.database import Database
from ..runtime.sealing import fetching_keys
from ..transfer.engine import run_blocking
from .problems import Problem

#: Runs a coroutine of a `BlockingInspector`.
read = run_blocking


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
        self.agents = AgentDictOperations(config)
        self.agents.attach(database)
        #: By tenant. Their number is limited by the number of tokens.
        self._of_tenants: dict[str, TenantStores] = {}
        _ = self.of(tenant_of(config)).inspector  # imports the families' modules

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
            raise Problem("not_kept", f"This service stores no {content}: the database has no tables for it.")
        return False

    def of(self, tenant: str) -> TenantStores:
        """Return the stores of a tenant, which all its requests share."""
        if tenant not in self._of_tenants:
            self._of_tenants[tenant] = TenantStores(self, tenant)
        return self._of_tenants[tenant]

    def options_of(self, tenant: str) -> StoreKeywords:
        """Return the options of the stores of a tenant."""
        return {**self._options, "tenant": tenant}


class TenantStores:
    """The stores of one tenant; each is made when it is first used.

    Args:
        services: All stores.
        tenant: The tenant.
    """

    def __init__(self, services: Services, tenant: str) -> None:
        self._services = services
        self._database = services.database
        self._options = services.options_of(tenant)
        self._tenant = tenant
        self._config = services.config.for_store(tenant=tenant)

    @cached_property
    def threads(self) -> AgentDicts:
        """The threads of the tenant's agents. All tenants share their cache."""
        return AgentDicts(self._services.agents.of_tenant(self._tenant), self._database)

    @cached_property
    def inspector(self) -> BlockingInspector:
        """The inspector, for worker threads."""
        one = self._services
        return BlockingInspector(self._database, embed=one.embed, dims=one.dims, model=one.model, **self._options)

    @cached_property
    def awaited_inspector(self) -> Inspector:
        """The inspector, for the event loop."""
        return Inspector(self._database, **self._options)

    @cached_property
    def memories(self) -> SyncMemoryStore:
        """The long-term memories."""
        return SyncMemoryStore(
            self._database, dims=self._services.dims, model=self._services.model, **self._used_by("MemoryStore")
        )

    def changes(self, family: str) -> OwnerChanges:
        """Return the object that copies and deletes threads of a family.

        Raises:
            InvalidInput: The family has none.
        """
        return changes_of(find_family(family), self._config)

    def change(self, family: str, change: Callable[[OwnerChanges], Operation[bool]]) -> bool:
        """Copy or delete a thread of a family; False if it does not exist. Creates no tables."""
        steps = fetching_keys(change(self.changes(family)), self._config)
        return self._database.synchronous.run(steps, find_family(family).schema(self._config), "validate")

    def working(self, session_id: str, ttl_s: float | None = None) -> SyncWorkingMemory:
        """Return a session, with the time to live for one that begins now."""
        return SyncWorkingMemory(session_id, self._database, session_ttl_s=ttl_s, **self._used_by("WorkingMemory"))

    def _used_by(self, name: str) -> StoreKeywords:
        """Return the options that have an effect on a class."""
        return cast(
            StoreKeywords, {one: value for one, value in self._options.items() if name in classes_that_use(one)}
        )


def services_of(request: Request) -> Services:
    """Return the services of the application."""
    return cast(Services, request.app.state.services)


def caller_tenant(request: Request) -> str:
    """Return the tenant of the caller of a request."""
    return cast(str, request.state.caller.tenant)


def stores_of(request: Request) -> TenantStores:
    """Return the stores of the tenant of the caller of a request."""
    return services_of(request).of(caller_tenant(request))


T = TypeVar("T")


class BlockingInspector(Inspector):
    """An inspector for any thread: its coroutines never wait; `read` runs them."""

    async def _send(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        return self.database.synchronous.run(operation, schema, ddl_mode)

    async def _compute(self, work: Callable[..., T], *arguments: Any) -> T:
        return work(*arguments)

    async def _embedded(self, step: EmbedTexts) -> Sequence[Any]:
        assert self._embed is not None  # noqa: S101 - a search asks for it only where there is one
        return embed_blocking(self._embed, step)
