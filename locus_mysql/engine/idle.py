"""The idle connections of a pool: selects the next one to use, and those that are too old."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from ..config import ConnectionOptions
from .servers import ServerConnection

#: A connection idle for longer is pinged before use, in seconds.
PING_AFTER_S = 5.0

#: Idle connections are inspected this long after the first one exceeds its idle limit, in seconds.
REAP_AFTER_S = 0.05


class IdleConnections:
    """The open connections that are not in use, the last used first. Its methods are called with the pool's lock held.

    Args:
        config: The options, with the limits of age and idleness.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, config: ConnectionOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_s = config.pool_idle_s
        self._max_age_s = config.pool_max_age_s
        self._clock = clock
        self._kept: list[ServerConnection] = []
        self._sound_until = inf  # no connection is too old before

    def has_sound(self) -> bool:
        """Check whether the connection last used needs no ping and none is too old, as in steady use."""
        if not self._kept:
            return False
        now = self._clock()
        return now < self._sound_until and now - self._kept[-1].idle_since <= PING_AFTER_S

    def last(self) -> ServerConnection:
        """Return the connection last used, which stays here until `remove_last`."""
        return self._kept[-1]

    def remove_last(self) -> None:
        """Take out the connection last used."""
        del self._kept[-1]

    def holds(self, connection: ServerConnection) -> bool:
        """Check whether the connection is idle."""
        return any(one is connection for one in self._kept)

    def take(self) -> tuple[ServerConnection | None, bool, list[ServerConnection]]:
        """Return the connection last used, whether to ping it, and connections that are too old to be used again."""
        now = self._clock()
        stale = self._take_stale(now)
        best = self._kept.pop() if self._kept else None
        return best, best is not None and now - best.idle_since > PING_AFTER_S, stale

    def put(self, connection: ServerConnection) -> None:
        """Store a connection for the next user."""
        connection.idle_since = self._clock()
        self._kept.append(connection)
        stale_at = self._stale_at(connection)
        if stale_at < self._sound_until:
            self._sound_until = stale_at

    def take_stale(self) -> tuple[list[ServerConnection], float | None]:
        """Return connections that are too old or idle for too long, and the seconds until the next one is, if any."""
        now = self._clock()
        stale = self._take_stale(now)
        return stale, self._sound_until - now + REAP_AFTER_S if self._kept else None

    def take_all(self) -> list[ServerConnection]:
        """Remove and return all connections, to be closed."""
        everything, self._kept = self._kept, []
        return everything

    def now(self) -> float:
        """The time by this pool's clock."""
        return self._clock()

    def __len__(self) -> int:
        return len(self._kept)

    def _take_stale(self, now: float) -> list[ServerConnection]:
        stale = [one for one in self._kept if now > self._stale_at(one)]
        if stale:
            self._kept = [one for one in self._kept if one not in stale]
        self._sound_until = min(map(self._stale_at, self._kept), default=inf)
        return stale

    def _stale_at(self, connection: ServerConnection) -> float:
        return min(connection.opened_at + self._max_age_s, connection.idle_since + self._idle_s)
