"""The interface of drivers, the only code that talks to client libraries; `find_driver` returns one by its name.

A driver opens connections; a connection runs statements and returns results in one form, whatever the library: rows
as tuples, text as ``str``, binary and BLOB columns as ``bytes``, JSON columns as ``str``, DATETIME and TIMESTAMP as
naive ``datetime``, DATE and TIME as text. ``affected`` counts rows that changed, not rows that matched. Errors come
as `ServerError` (the server answered with a number) or `ConnectionLost` (it did not answer). No layer above this one
uses a library's own types.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..errors import ConfigError, DriverMissing
from ..extras import CLIENT_LIBRARIES, install_command, installed_drivers, is_installed
from ..wording import did_you_mean

if TYPE_CHECKING:
    from ..config import ConnectionOptions, Endpoint
    from ..dialect.statement import Statement

Value: TypeAlias = str | bytes | int | float | Decimal | datetime | None
Row: TypeAlias = tuple[Value, ...]


@dataclass(slots=True)
class Result:
    """The result of one statement. Not changed once it is made; enforcing that would take most of the time to make it.

    Args:
        rows: The rows that it found.
        affected: The number of rows that it changed.
        last_insert_id: The value of ``LAST_INSERT_ID`` after it.
        columns: The number of columns of the answer; 0 if it was not a set of rows. Not compared by ``==``.
    """

    rows: Sequence[Row] = ()
    affected: int = 0
    last_insert_id: int = 0
    columns: int = field(default=0, compare=False)


@dataclass(slots=True)
class Traffic:
    """The traffic of a connection since this was last cleared; a connection may have one as its ``traffic``.

    Args:
        round_trips: Packets sent that expect an answer.
        sent_bytes: Bytes of commands, before TLS; logging in is not counted.
        received_bytes: Bytes of answers, likewise.
    """

    round_trips: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0

    def clear(self) -> None:
        """Set all counts to zero."""
        self.round_trips = self.sent_bytes = self.received_bytes = 0


class CallWatch(Protocol):
    """Receives the calls that blocking connections make in the context of `WATCH`."""

    def begin(self) -> None:
        """Called before the thread waits for the server."""

    def received(self, size: int) -> None:
        """Called with the size of each received piece of the answer; may raise `ReadLimitReached`."""

    def end(self) -> None:
        """Called when the answer is complete."""


#: Watches the calls of blocking connections; None if nothing does.
WATCH: ContextVar[CallWatch | None] = ContextVar("WATCH", default=None)


class DriverError(Exception):
    """Base of the errors that a driver raises."""


class ServerError(DriverError):
    """The server refused a statement or a connection.

    Args:
        errno: MySQL's error number, https://dev.mysql.com/doc/mysql-errors/9.0/en/server-error-reference.html
        message: The server's own message.
        statement_index: The index of the refused statement among those of the call; None if it is not known.
    """

    def __init__(self, errno: int, message: str, statement_index: int | None = None) -> None:
        super().__init__(f"[{errno}] {message}")
        self.errno = errno
        self.message = message
        self.statement_index = statement_index


class ConnectionLost(DriverError):
    """The connection broke, timed out or could not be made: whether a statement was carried out is unknown.

    Args:
        message: What failed, and how.
        connecting: True if no connection was made, so that no statement was sent.
        timed_out: True if the server did not answer in time: it may still work on the statement.
        of_client: True if the client library failed, or this package with it, and not the network or the server.
    """

    def __init__(
        self, message: str, *, connecting: bool = False, timed_out: bool = False, of_client: bool = False
    ) -> None:
        super().__init__(message)
        self.connecting = connecting
        self.timed_out = timed_out
        self.of_client = of_client


class ReadLimitReached(DriverError):
    """An answer exceeds the limit of a `CallWatch`; the connection was dropped.

    Args:
        limit_bytes: The limit.
    """

    def __init__(self, limit_bytes: float) -> None:
        super().__init__(f"An answer of the server exceeds {limit_bytes:.0f} bytes; the connection was dropped.")
        self.limit_bytes = limit_bytes


class PacketTooLarge(DriverError):
    """A statement is larger than the server accepts; nothing was sent.

    Args:
        size_bytes: The size of the packet that it needs.
        limit_bytes: The server's ``max_allowed_packet``.
    """

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"A statement of {size_bytes} bytes exceeds max_allowed_packet, {limit_bytes} bytes.")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class SyncConnection(Protocol):
    """A connection used by one thread at a time.

    It may have an attribute ``supports_group_commit``. If that is True, writes of several calls may be sent on it
    in one transaction. Then errors should have their `ServerError.statement_index`.
    """

    #: The server's version, as its greeting states it.
    server_version: str
    #: The largest packet the server accepts, in bytes, as it was when the connection was made.
    max_allowed_packet: int

    @property
    def closed(self) -> bool:
        """True once the connection was closed, aborted or lost: it must not be used again."""

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """Send the statements in one packet, and return a result for each. The first error ends the rest.

        Without ``config.pipeline`` they are sent one by one. After a `ServerError` the connection can be used again
        unless ``closed`` is set, and a transaction that was open is still open. `ConnectionLost` is also raised if the
        answer is not one result for each statement, with or without rows as the statement says
        (`Statement.brings_rows`).
        """

    def ping(self) -> None:
        """Raise `ConnectionLost` if the server is gone."""

    def close(self) -> None:
        """Send COM_QUIT and close; never raises."""

    def abort(self) -> None:
        """Drop the socket at once, in any state. Never raises, never waits."""

    def interrupt(self) -> None:
        """End a call that another thread is making, which then raises `ConnectionLost`. Never raises, never waits."""


class AsyncConnection(Protocol):
    """A connection used by one task of one event loop at a time."""

    server_version: str
    max_allowed_packet: int

    @property
    def closed(self) -> bool:
        """Like `SyncConnection.closed`."""

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """Like `SyncConnection.execute`. When the task is cancelled, the connection is aborted."""

    async def ping(self) -> None:
        """Like `SyncConnection.ping`."""

    async def close(self) -> None:
        """Like `SyncConnection.close`."""

    def abort(self) -> None:
        """Like `SyncConnection.abort`; works also when the event loop is closed."""


class Driver(Protocol):
    """Opens connections through one client library.

    The library is imported by `connect` and `connect_async`, or by a factory that `register_driver` was
    given, never when this package is imported. A driver that has no blocking side has an attribute ``blocks`` that
    is False.
    """

    name: str

    def connect(self, config: ConnectionOptions, endpoint: Endpoint) -> SyncConnection:
        """Open a connection for a thread.

        Raises:
            ServerError: The server refused the user, the database or the session's settings.
            ConnectionLost: The server could not be reached.
            SetupError: The subclass shows what must be corrected: the server is not one that is
                supported, offers no TLS or has a certificate that is not trusted; or the library is missing, or cannot
                make blocking calls.
        """

    async def connect_async(self, config: ConnectionOptions, endpoint: Endpoint) -> AsyncConnection:
        """Open a connection for a task of the running event loop. Raises as `connect` does."""


class LibraryDriver:
    """A driver of this package; each module in the folder `libraries` has one, named ``DRIVER``.

    Args:
        name: Its name.
        blocking: Opens a connection for a thread; None if the library has no blocking side.
        awaited: Opens a connection for a task.
    """

    def __init__(
        self,
        name: str,
        blocking: Callable[[ConnectionOptions, Endpoint], SyncConnection] | None,
        awaited: Callable[[ConnectionOptions, Endpoint], Coroutine[Any, Any, AsyncConnection]],
    ) -> None:
        self.name, self.connect_async = name, awaited
        self.blocks = blocking is not None
        self.connect = blocking or self._refuse

    def _refuse(self, config: ConnectionOptions, endpoint: Endpoint) -> SyncConnection:
        raise ConfigError(
            f"The driver {self.name} works only with async calls. For synchronous calls use the driver "
            "mysql-connector, pymysql or aiomysql."
        )


#: Registered drivers, and those of this package that were looked up.
_drivers: dict[str, Driver] = {}


def register_driver(name: str, driver: Driver) -> None:
    """Make ``ConnectionOptions(driver=name)`` use an external driver. It replaces one that has the same name.

    Args:
        name: The name to configure.
        driver: Opens the connections.
    """
    _drivers[name] = driver


def find_driver(name: str) -> Driver:
    """Return the driver with this name. Checks that its library is installed, without importing it.

    Raises:
        ConfigError: No driver has this name.
        DriverMissing: The driver's library is not installed.
    """
    driver = _drivers.get(name)
    if driver is not None:
        return driver
    if name not in CLIENT_LIBRARIES:
        known = sorted({*CLIENT_LIBRARIES, *_drivers})
        raise ConfigError(
            f"There is no driver {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}; register_driver adds "
            "others."
        )
    if not is_installed(CLIENT_LIBRARIES[name]):
        installed = installed_drivers()
        advice = (
            f"Installed: {', '.join(installed)}; to use it, set driver={installed[0]!r}, or "
            f"?driver={installed[0]} in the DSN."
            if installed
            else "No other driver's is installed either."
        )
        raise DriverMissing(f"The library of driver {name!r} is not installed. Run {install_command(name)}. {advice}")
    driver = import_module(f".libraries.{name.replace('-', '_')}", __package__).DRIVER
    return _drivers.setdefault(name, driver)
