"""The demo's own tables: what is in them, and dropping them."""

from __future__ import annotations

import secrets

from ...checkpoints.store import StoreOperations
from ...config import MySQLConfig
from ...dialect import Dialect
from ...engine.asynchronous import AsyncEngine
from ...engine.operation import Batch, Operation
from .display import size

#: The tenant of the story; a scene has others beside it.
TENANT = "demo"


def own_tables(config: MySQLConfig) -> MySQLConfig:
    """The same server and driver, with tables that nothing else uses and nothing that expires."""
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
    """The demo's tables, seen from beside the checkpointer.

    Args:
        config: As `own_tables` made it.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._seen = StoreOperations(config, "agents")
        self._engine = AsyncEngine(config, self._seen.checkpoints.sql)

    async def version(self) -> str:
        """The server's version."""
        return str((await self._engine.run(self._seen.health_check()))["server_version"])

    async def contents(self) -> str:
        """What the story's tenant has in the tables."""
        usage = await self._engine.run(self._seen.get_disk_usage())
        return (
            f"{_counted(usage['threads'], 'thread')}, {_counted(usage['checkpoints'], 'checkpoint')}, "
            f"{_counted(usage['rows'], 'row')}, {size(usage['total_bytes'])}"
        )

    async def stored_bytes(self, thread_id: str) -> int:
        """What a thread takes: states, search text and metadata."""
        return int((await self._engine.run(self._seen.get_disk_usage(thread_id)))["total_bytes"])

    async def drop(self) -> None:
        """Drop the tables and close the connections."""
        dialect = Dialect(self._config.table_prefix)
        engine = AsyncEngine(self._config.model_copy(update={"ddl_mode": "off"}), dialect)
        try:
            await engine.run(_drop_tables(dialect))
        finally:
            await engine.close()
            await self._engine.close()


def _drop_tables(dialect: Dialect) -> Operation[None]:
    yield Batch.of(dialect.schema.drop())


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
