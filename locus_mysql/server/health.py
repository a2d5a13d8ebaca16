"""``GET /health``: reports whether the service can work, which `HealthProbe` checks."""

from __future__ import annotations

import asyncio
import time

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from ..config import ConnectionOptions
from ..dialect import Schema
from ..engine.bootstrap import check_layouts, describe, missing_tables, no_tables
from ..engine.operation import Batch, Operation
from ..errors import LocusMySQLError, PrivilegeMissing, SetupError
from ..families.checkpoints.store import StoreOperations
from ..families.registry import families
from ..runtime.database import Database
from .bodies import answer
from .problems import Problem, problem_of, try_later
from .routing import Authenticate, Endpoint


class Healthy(BaseModel):
    """The answer of a healthy service: its database answers and accepts writes."""

    status: str = "ok"


def health_endpoint(probe: HealthProbe, authenticate: Authenticate) -> Endpoint:
    """Return the endpoint.

    Args:
        probe: Checks the database.
        authenticate: Identifies the caller of a request that brings a token. Locus' client checks its service's health
            before a turn; with a revoked token its next load would look like an empty thread.
    """

    async def health(request: Request) -> Response:
        if "authorization" in request.headers:
            authenticate(request)
        await probe.check()
        return answer({"status": "ok"})

    summary = "Check that the database responds and accepts writes, and that the token, if one is sent, is valid"
    return Endpoint("GET", "/health", health, "open", summary, answer=Healthy)


#: Seconds for which a result is reused. Any client may send the request, so it must not load the database.
KEPT_S = 1.0

#: Seconds for which the result for the tables is reused.
TABLES_KEPT_S = 30.0

#: Time limit for the database's answer, in seconds. A load balancer does not wait as long as a call does.
PATIENCE_S = 5.0


class HealthProbe:
    """Checks the database, once for any number of concurrent requests: that it answers, accepts writes, and its tables.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._asking = asyncio.Lock()
        self._asked_at = -KEPT_S
        self._tables_asked_at = -TABLES_KEPT_S
        self._problem: Problem | None = None

    async def check(self) -> None:
        """Check, unless a recent result can be reused.

        Raises:
            Problem: The database does not answer, or accepts no writes.
        """
        async with self._asking:
            if time.monotonic() >= self._asked_at + KEPT_S:
                self._problem = await self._ask()
                self._asked_at = time.monotonic()
        if self._problem is not None:
            raise self._problem

    async def _ask(self) -> Problem | None:
        asking = StoreOperations(self.database.config)
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self.database.asynchronous.run(asking.health_check())
                if time.monotonic() >= self._tables_asked_at + TABLES_KEPT_S:
                    await self._check_tables()
                    self._tables_asked_at = time.monotonic()
        except TimeoutError:  # the pool's timeout as well
            return try_later("database_unavailable", "The database does not answer.")
        except LocusMySQLError as error:
            return problem_of(error)
        return try_later("read_only_database", "The database does not accept writes.") if found["read_only"] else None

    async def _check_tables(self) -> None:
        """Check the existing tables of all families except those that other programs may have.

        Raises:
            SchemaMismatch: Tables are missing beside others of their family, or have another layout.
            PrivilegeMissing: The account may not read, add or delete rows.
        """
        for family in families():
            if not family.on_request:
                config = self.database.config
                await self.database.asynchronous.run(_check(config, family.schema(config)))


def _check(config: ConnectionOptions, schema: Schema) -> Operation[None]:
    """Check the tables of a family, if it has any, and the account's privileges on them."""
    found = yield from describe(schema)
    missing = missing_tables(schema, found.tables)
    if len(missing) == len(schema.names):
        return
    check_layouts(config, schema, found.tables)
    if missing:
        raise no_tables(config, schema, missing)
    try:
        yield Batch(schema.check_privileges(), atomic=False)
    except PrivilegeMissing:
        raise
    except SetupError:  # an engine that cannot explain these statements; its privileges are not checked
        return
