"""Objects shared by the operations of one store: `Context`."""

from __future__ import annotations

from typing import Any

from ...config import MySQLConfig
from ...engine.counters import Counters
from ...lru_cache import LRUCache
from ...runtime.arguments import microseconds
from ...runtime.database import Database
from ...runtime.sealing import Sealing
from .leases import Turns
from .statements.dialect import CheckpointDialect
from .thread_cache import ThreadCache

#: Ids chosen by callers that are remembered at most.
KNOWN_IDS = 1_000


class Context:
    """The options of a store, its tables, and its caches, which it shares with other stores of its database.

    Args:
        config: The options.
        dialect: The tables.
    """

    def __init__(self, config: MySQLConfig, dialect: CheckpointDialect) -> None:
        self.config = config
        self.sql = dialect
        self.cache = ThreadCache(LRUCache(config.cache_bytes))
        #: Ids chosen by callers that a save of this process stored or found to exist, or that it loaded, with their
        #: threads. The next save of such an id expects to replace it.
        self.known_ids: LRUCache[bool] = LRUCache(KNOWN_IDS)
        self.turns: Turns[Any] = Turns()
        self.counters = Counters()
        #: Encrypts payloads; `Sealing.of` binds it to a tenant and a thread.
        self.sealing = Sealing(config.encryption, dialect.schema.family)
        self.ttl_us = microseconds(config.ttl_s)

    def attach(self, database: Database) -> None:
        """See `HasCaches.attach`."""
        tables = self.sql.schema.family, self.config.table_prefix, self.config.encryption
        self.counters = database.counters
        self.cache = database.cache(("threads", tables), lambda: ThreadCache(database.states, tables))
        self.known_ids = database.cache(("known ids", tables), lambda: LRUCache(KNOWN_IDS))
        self.turns = database.registry(("turns", tables), Turns)
