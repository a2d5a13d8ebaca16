"""What the engine reports: loggers by topic, the loggable text of errors, messages about connections, and `Counters`.

Levels: WARNING for problems that should be examined, although calls continued; INFO for temporary conditions that
explain a delay; DEBUG for normal events. At INFO and above no record names a thread, a tenant or a checkpoint; no
record of any level holds a state, metadata or a password.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter
from dataclasses import dataclass

from ..drivers.interface import DriverError, ServerError, Traffic
from ..errors import SetupError
from .cluster.topology import NoPrimary

#: Opened: DEBUG. Closed for age or on request: DEBUG. Gone while idle: INFO. Lost in use: WARNING.
CONNECTIONS = logging.getLogger("locus_mysql.connections")

#: A batch is repeated: INFO.
RETRIES = logging.getLogger("locus_mysql.retries")

#: A batch was rolled back because another writer was faster, or because its row does not exist; the operation handles
#: that: DEBUG. A save branched: WARNING.
CONFLICTS = logging.getLogger("locus_mysql.conflicts")

#: A turn was lost, or could not be renewed or released: WARNING.
TURNS = logging.getLogger("locus_mysql.turns")

#: A call took longer than ``slow_ms``, a health check failed, or embeddings of another model were left out of a search,
#: or of zeros were not stored: WARNING.
CALLS = logging.getLogger("locus_mysql.calls")

#: Rows that saves and `vacuum` removed: DEBUG. Removing them failed: WARNING.
HOUSEKEEPING = logging.getLogger("locus_mysql.housekeeping")

#: Damaged rows were left out of an answer: WARNING. Their thread: DEBUG.
DAMAGE = logging.getLogger("locus_mysql.damage")

#: The primary storage of working memory is unavailable, or writes made meanwhile were dropped in favour of other
#: processes' writes: WARNING. It is available again: INFO.
WORKING = logging.getLogger("locus_mysql.working")

#: An option that was given has no effect: WARNING, once in a process.
OPTIONS = logging.getLogger("locus_mysql.options")

#: The beginning of a quotation, which may hold data. Not an apostrophe.
_QUOTES = re.compile(r"(?<!\w)['\"]")

#: Longest reason that is logged, in characters.
_LONGEST = 300


#: The warnings about servers that this process has logged.
_warned: set[str] = set()

#: Reasons for which connections are closed regularly.
TOO_OLD = "it was idle for too long, or too old (pool_idle_s, pool_max_age_s)"


def loggable(error: BaseException) -> str:
    """Return the text of an error for logs, without the server's message, which may quote data, and thread names."""
    if isinstance(error, NoPrimary):
        return "; ".join(loggable(reason) for reason in error.reasons)
    if isinstance(error, ServerError):
        return f"error {error.errno}"
    if not isinstance(error, DriverError):
        cause = error.__cause__
        return type(error).__name__ + (f" ({loggable(cause)})" if isinstance(cause, DriverError) else "")
    words = _QUOTES.split(str(error), 1)[0].rstrip(". ")
    return "".join(one if one.isprintable() else " " for one in words[:_LONGEST])


def loggable_setup(error: SetupError) -> str:
    """Return the text of a setup error for logs, with the remedy; a number replaces the server's message."""
    cause = error.__cause__
    if isinstance(cause, ServerError):
        return str(error).replace(str(cause).rstrip("."), loggable(cause))
    return str(error) if cause is None else loggable(error)


def warn_about(version: str) -> None:
    """Log a warning about a kind of server that may fail, once in a process."""
    warning = warning_about(version)
    if warning is not None and warning not in _warned:
        _warned.add(warning)
        CONNECTIONS.warning("Warning: %s.", warning)


def warning_about(text: str) -> str | None:
    """Return a warning about a server for its user, by the version text of its greeting; None for most servers."""
    if "vitess" not in text.lower():
        return None
    return (
        "the server is Vitess, on which nothing was tested: a keyspace that is not sharded may work, a sharded one "
        "refuses saves, as it supports LAST_INSERT_ID(expr) in SELECT only (docs/servers.md)"
    )


@dataclass(frozen=True, slots=True)
class PoolState:
    """The connections of one pool at one moment.

    Args:
        open: Connections that are open, or being opened.
        in_use: The number of these that are in use.
        waiting: The number of calls that wait for a connection.
    """

    open: int = 0
    in_use: int = 0
    waiting: int = 0


class Counters:
    """Counters shared by any number of threads and event loops. They only grow; a forked child starts at zero."""

    def __init__(self) -> None:
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """Count from zero, with a new lock: a thread of the parent may hold the old one forever."""
        # Reentrant, because the garbage collector may end an abandoned call of a task, which counts its traffic, while
        # the same thread holds the lock.
        self.lock = threading.RLock()
        self.opened = self.lost = self.retries = 0
        self._looked_up: Counter[tuple[str, bool]] = Counter()
        #: Of all pools, which add to it with the lock held.
        self.total = Traffic()

    def open_one(self) -> None:
        """Count a connection that was opened."""
        with self.lock:
            self.opened += 1

    def lose(self, connections: int) -> None:
        """Count connections that were dropped because they, or their server, failed."""
        with self.lock:
            self.lost += connections

    def retry(self) -> None:
        """Count a batch that is repeated."""
        with self.lock:
            self.retries += 1

    def look_up(self, cache: str, *, hit: bool) -> None:
        """Count a look-up in a cache.

        Args:
            cache: The name of the cache.
            hit: Whether the cache had the value.
        """
        with self.lock:
            self._looked_up[cache, hit] += 1

    def looked_up(self, cache: str, *, hit: bool) -> int:
        """Return the number of such look-ups."""
        with self.lock:
            return self._looked_up[cache, hit]
