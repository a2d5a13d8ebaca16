"""`HealthProbe`: checks whether the service can work."""

from __future__ import annotations

import asyncio
import time

from ..errors import LocusMySQLError
from ..families.checkpoints.store import StoreOperations
from ..runtime.database import Database
from .problems import Problem, problem_of, try_later

#: Seconds for which a result is reused. Any client may send the request, so it must not load the database.
KEPT_S = 1.0

#: Time limit for the database's answer, in seconds. A load balancer does not wait as long as a call does.
PATIENCE_S = 5.0


class HealthProbe:
    """Checks that the database answers and accepts writes, once for any number of concurrent requests.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._asking = asyncio.Lock()
        self._asked_at = -KEPT_S
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
        except TimeoutError:  # the pool's timeout as well
            return try_later("database_unavailable", "The database does not answer.")
        except LocusMySQLError as error:
            return problem_of(error)
        return try_later("read_only_database", "The database does not accept writes.") if found["read_only"] else None
