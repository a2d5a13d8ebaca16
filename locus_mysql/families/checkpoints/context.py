"""Objects shared by the operations of one store: `Context`."""

from __future__ import annotations

from typing import Any

from ...config import MySQLConfig
from ...engine.counters import Counters
from ...runtime.lru_cache import LRUCache
from ...runtime.sealing import Sealing
from .leases import Turns
from .statements.dialect import CheckpointDialect
from .thread_cache import ThreadCache

#: Ids chosen by callers that a store remembers at most.
KNOWN_IDS = 1_000


class Context:
    """The options of a store, its tables, and its cache of threads.

    Args:
        config: The options.
        dialect: The tables.
    """

    def __init__(self, config: MySQLConfig, dialect: CheckpointDialect) -> None:
        self.config = config
        self.sql = dialect
        self.cache = ThreadCache(config.cache_bytes)
        #: Ids chosen by callers that a save of this process stored or found to exist, or that it loaded, with their
        #: threads. The next save of such an id expects to replace it.
        self.known_ids: LRUCache[bool] = LRUCache(KNOWN_IDS)
        self.turns: Turns[Any] = Turns()
        self.counters = Counters()
        #: Encrypts payloads; `Sealing.of` binds it to a tenant and a thread.
        self.sealing = Sealing(config.encryption, dialect.schema.family)
        self.ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)
