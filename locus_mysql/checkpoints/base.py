"""What all operations stand on: the options, the statements, and what this process remembers of its threads."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import MySQLConfig
from ..dialect import Dialect
from .codec import EncodedState
from .digests import HashedLogs, hash_logs, size_bytes
from .known import KnownThreads
from .recent import Recent


@dataclass(frozen=True, slots=True)
class RecentState:
    """A thread's newest state, kept to be loaded and continued.

    Args:
        token: Of its row.
        encoded: The state.
        hashed: Its logs.
    """

    token: bytes
    encoded: EncodedState
    hashed: HashedLogs


class OperationsBase:
    """Base of the classes that hold operations. A tenant is the first argument of each.

    Args:
        config: The options.
        dialect: The statements.
    """

    def __init__(self, config: MySQLConfig, dialect: Dialect) -> None:
        self.config = config
        self.sql = dialect
        self.known = KnownThreads()
        self.recent: Recent[RecentState] = Recent(config.cache_bytes // 2)
        self.ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)

    def hashed(self, key: tuple[str, str], state: EncodedState) -> HashedLogs:
        """The logs of a thread's state, those that go on from the one kept not hashed again as far as they do."""
        before = self.recent.get(key)
        return hash_logs(state, {} if before is None else before.hashed)

    def keep(self, key: tuple[str, str], state: RecentState) -> None:
        """Keep what a thread's newest state says."""
        self.recent.put(key, state, len(state.encoded.head) + size_bytes(state.hashed))
