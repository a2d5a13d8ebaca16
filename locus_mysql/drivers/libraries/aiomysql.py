"""aiomysql: asynchronous; its synchronous side is PyMySQL, on which it is built."""

from __future__ import annotations

from typing import Any

from ..interface import LibraryDriver
from ..login import imported_once
from ..wire.awaited import AsyncAdapter
from .pymysql import CLIENT_MULTI_STATEMENTS, PyMySQLConnection, after_login, before_login


class AiomysqlConnection(AsyncAdapter):
    """A connection of aiomysql."""

    @classmethod
    def load(cls) -> None:
        """Import the library."""
        _connection_class()

    async def log_in(self) -> None:
        """Log in with the library."""
        config = self.config
        self.library = library = _connection_class()(
            **self.address,
            # aiomysql encodes it as Latin-1. Decoded by that first, UTF-8 arrives, as from MySQL's own client.
            password=config.password_text.encode().decode("latin-1"),
            db=config.database,
            charset="utf8mb4",
            autocommit=None,
            local_infile=False,
            program_name="locus-mysql",
            ssl=self.tls,
        )
        if not config.pipeline:
            library.client_flag &= ~CLIENT_MULTI_STATEMENTS  # aiomysql always sets it
        before_login(library, self)
        await library._connect()
        after_login(library)

    def discard(self) -> None:
        """Detach the library, which would close its writer with a warning when freed."""
        if self.library is not None:
            self.library._writer = self.library._reader = None

    def transport(self) -> Any:
        """Return the library's transport; None while there is none."""
        writer = getattr(self.library, "_writer", None)
        return None if writer is None else writer.transport


@imported_once
def _connection_class() -> Any:
    from aiomysql.connection import Connection

    class QuietConnection(Connection):  # type: ignore[misc,unused-ignore]  # aiomysql has no types
        def __del__(self) -> None:
            """Do nothing. aiomysql's own warns, as asyncio does anyway, and fails if the event loop is closed."""

    return QuietConnection


DRIVER = LibraryDriver("aiomysql", PyMySQLConnection.open, AiomysqlConnection.open)
