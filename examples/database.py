"""The demo's own tables: reading their content, and dropping them."""

from __future__ import annotations

import secrets
from typing import TypeVar

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.engine.execution import AsyncEngine
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.wording import counted

from .display import size

T = TypeVar("T")

#: The tenant of the sections; some use other tenants as well.
TENANT = "demo"


def own_tables(config: MySQLConfig) -> MySQLConfig:
    """Return a configuration of the same server and driver, with unused tables and without expiry."""
    return config.model_copy(
        update={
            "table_prefix": f"demo_{secrets.token_hex(4)}_",
            "tenant": TENANT,
            "ttl_s": None,
            "keep_checkpoints": None,
            "search": True,
            "search_parser": "default",
            "ddl_mode": "create",
        }
    )


class Database:
    """The demo's tables, read without the checkpointer.

    Args:
        config: The result of `own_tables`.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._seen = StoreOperations(config, "agents")
        self._engine = AsyncEngine(config)

    async def version(self) -> str:
        """The server's version."""
        return str((await self._run(self._seen.health_check()))["server_version"])

    async def contents(self) -> str:
        """Count the tenant's rows in the tables."""
        usage = await self._run(self._seen.get_disk_usage())
        return (
            f"{counted(usage['threads'], 'thread')}, {counted(usage['checkpoints'], 'checkpoint')}, "
            f"{counted(usage['rows'], 'row')}, {size(usage['total_bytes'])}"
        )

    async def stored_bytes(self, thread_id: str) -> int:
        """Return the bytes of a thread: states, search text and metadata."""
        return int((await self._run(self._seen.get_disk_usage(thread_id)))["total_bytes"])

    async def drop(self) -> None:
        """Drop the tables and close the connections."""
        try:
            await self._engine.run(_drop_tables(self._seen.schema))
        finally:
            await self._engine.close()

    async def _run(self, operation: Operation[T]) -> T:
        return await self._engine.run(operation, self._seen.schema)


def _drop_tables(schema: Schema) -> Operation[None]:
    yield Batch.of(schema.drop())
