"""Counting threads of graphs, and removing old checkpoints, as generators that do no I/O."""

from __future__ import annotations

from ...config import MySQLConfig
from ...engine.operation import Operation
from ..family import Count, Counts
from .store import SaverOperations


class GraphMaintenance:
    """Counts threads and removes old checkpoints. See `Maintenance`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._saver = SaverOperations(config)

    def stored(self) -> Operation[Counts]:
        """Count threads. One round trip."""
        threads = yield from self._saver.count()
        return (Count(threads, "{thread}"),)

    def waste(self) -> Operation[Counts]:
        """Return no counts: saves remove unneeded rows, except for old checkpoints."""
        return ()
        yield

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove checkpoints older than this many days. A thread not saved since is deleted."""
        removed = yield from self._saver.vacuum(older_than_days)
        return (Count(removed, "{checkpoint}"),)
