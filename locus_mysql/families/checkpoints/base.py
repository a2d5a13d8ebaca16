"""What all operations need: the options, the statements, and what this process remembers of its threads."""

from __future__ import annotations

from typing import Any

from ...config import MySQLConfig
from ...dialect.checkpoints.dialect import CheckpointDialect
from ...engine.counters import Counters
from .leases import LeaseOperations, Turns
from .thread_cache import ThreadMemory


class OperationsBase:
    """Base of the classes that hold operations. A tenant is the first argument of each.

    Args:
        config: The options.
        dialect: The statements.
    """

    def __init__(self, config: MySQLConfig, dialect: CheckpointDialect) -> None:
        self.config = config
        self.sql = dialect
        self.memory = ThreadMemory(config.cache_bytes)
        self.leases = LeaseOperations(dialect)
        self.turns: Turns[Any] = Turns()
        self.counters = Counters()
        self.ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)
