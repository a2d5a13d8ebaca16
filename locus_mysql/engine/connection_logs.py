"""What is logged of connections: that they were opened, closed, found gone or lost, and why."""

from __future__ import annotations

from collections.abc import Iterable

from ..drivers.interface import AsyncConnection, DriverError, SyncConnection
from .logs import CONNECTIONS, told

#: Why a connection is closed in everyday life.
TOO_OLD = "it was idle for too long, or too old (pool_idle_s, pool_max_age_s)"


def log_opened(connection: SyncConnection | AsyncConnection, took_s: float) -> None:
    """Tell of a new connection."""
    version, where = connection.server_version, _server_of(connection)
    CONNECTIONS.debug("Opened a connection to MySQL %s at %s in %.0f ms.", version, where, took_s * 1_000)


def log_closed(connections: Iterable[object], why: str) -> None:
    """Tell of connections that were closed because nobody needs them."""
    for one in connections:
        CONNECTIONS.debug("Closed a connection to MySQL at %s: %s.", _server_of(one), why)


def log_dropped(connection: object, error: BaseException) -> None:
    """Tell of a connection whose call ended for no fault of the server's, such as by the task's cancellation."""
    CONNECTIONS.debug("Dropped a connection to MySQL at %s in use: %s.", _server_of(connection), told(error))


def log_gone(connection: object, error: DriverError, others: int) -> None:
    """Tell of a connection that did not answer a ping. No call has failed by it."""
    CONNECTIONS.info(
        "A connection to MySQL at %s was gone when it was to be used again; it and %d idle ones were dropped: %s.",
        _server_of(connection),
        others,
        told(error),
    )


def log_loss(connection: object, error: DriverError, others: int) -> None:
    """Tell of a connection that failed while a call used it."""
    CONNECTIONS.warning(
        "Lost a connection to MySQL at %s in use, and dropped %d idle ones: %s.",
        _server_of(connection),
        others,
        told(error),
    )


def _server_of(connection: object) -> object:
    return getattr(connection, "endpoint", "its server")
