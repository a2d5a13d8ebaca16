"""Log messages about opened, closed, dead and lost connections, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..drivers.interface import DriverError
from ..drivers.wire.session import warning_about
from .logs import CONNECTIONS, loggable

if TYPE_CHECKING:
    from .pool import ServerConnection

#: The warnings about servers that this process has logged.
_warned: set[str] = set()

#: Reasons for which connections are closed regularly.
TOO_OLD = "it was idle for too long, or too old (pool_idle_s, pool_max_age_s)"


def log_opened(opened: ServerConnection, took_s: float) -> None:
    """Log a new connection."""
    version = opened.connection.server_version
    warn_about(version)
    CONNECTIONS.debug("Opened a connection to MySQL %s at %s in %.0f ms.", version, opened.endpoint, took_s * 1_000)


def warn_about(version: str) -> None:
    """Log a warning about a kind of server that may fail, once in a process."""
    warning = warning_about(version)
    if warning is not None and warning not in _warned:
        _warned.add(warning)
        CONNECTIONS.warning("Warning: %s.", warning)


def log_closed(connections: Iterable[ServerConnection], why: str) -> None:
    """Log connections that were closed because they are not needed."""
    for one in connections:
        CONNECTIONS.debug("Closed a connection to MySQL at %s: %s.", one.endpoint, why)


def log_dropped(dropped: ServerConnection, error: BaseException) -> None:
    """Log a connection whose call ended for a reason other than the server, such as cancellation of the task."""
    CONNECTIONS.debug("Dropped a connection to MySQL at %s in use: %s.", dropped.endpoint, loggable(error))


def log_gone(gone: ServerConnection, error: DriverError, others: int) -> None:
    """Log a connection that did not answer a ping. No call has failed because of it."""
    CONNECTIONS.info(
        "A connection to MySQL at %s was gone when it was to be used again; it and %d idle ones were dropped: %s.",
        gone.endpoint,
        others,
        loggable(error),
    )


def log_loss(lost: ServerConnection, error: DriverError, others: int) -> None:
    """Log a connection that failed while a call used it."""
    CONNECTIONS.warning(
        "Lost a connection to MySQL at %s in use, and dropped %d idle ones: %s.",
        lost.endpoint,
        others,
        loggable(error),
    )
