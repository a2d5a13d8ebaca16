"""Running operations in threads, without an event loop: `SyncEngine`."""

from __future__ import annotations

from typing import TypeVar

from ..config import ConnectionOptions, Endpoint
from ..dialect import Schema
from .at_fork import reset_at_fork
from .bootstrap import DDLMode
from .counters import Counters, PoolState
from .execution import Execution
from .loops import run_blocking
from .operation import Operation
from .sides import BlockingSide

T = TypeVar("T")


class SyncEngine:
    """Runs operations. It may be used from any number of threads, and after a fork.

    Args:
        config: The options.
        counters: The counters, if they are shared.
    """

    def __init__(self, config: ConnectionOptions, counters: Counters | None = None) -> None:
        self._execution = Execution(config, counters or Counters())
        self._pool = self._execution.open_pool(BlockingSide)
        self._abandoned: list[object] = []
        reset_at_fork(self)

    def run(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        """Carry out an operation.

        Args:
            operation: The operation.
            schema: The tables it needs. They are created or checked before the first operation that needs them.
            ddl_mode: Whether they may be created; see `ensure_schema`.

        Raises:
            LocusMySQLError: The operation failed. The message has the remedy.
        """
        return run_blocking(self._execution.run(self._pool, operation, schema, ddl_mode))

    @property
    def server(self) -> Endpoint:
        """The server that calls are sent to, if known."""
        return self._execution.topology.order()[0]

    def pools(self) -> tuple[PoolState]:
        """The state of the pool."""
        return (self._pool.state(),)

    def close(self) -> None:
        """Close the connections. The next operation opens new ones."""
        run_blocking(self._pool.close())

    def reset_in_child(self) -> None:
        """After a fork: leave the parent's pool alone. Freeing it might send something on its connections."""
        self._abandoned.append(self._pool)
        self._pool = self._execution.open_pool(BlockingSide)
