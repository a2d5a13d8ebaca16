"""asyncmy: asynchronous only, written in Cython."""

from __future__ import annotations

from typing import Any

from ..interface import LibraryDriver
from ..login import imported_once
from ..wire.awaited import AsyncAdapter
from .pymysql import CLIENT_MULTI_STATEMENTS, after_login, before_login

#: The longest time-out that asyncmy takes, in seconds: `AsyncAdapter` limits connecting.
_NEVER_S = 31_536_000


class AsyncmyConnection(AsyncAdapter):
    """A connection of asyncmy."""

    @classmethod
    def load(cls) -> None:
        """Import the library."""
        _connection_class()

    async def log_in(self) -> None:
        """Log in with the library."""
        config = self.config
        self.library = library = _connection_class()(
            **self.address,
            password=config.password_text.encode(),  # str would be sent as Latin-1
            database=config.database,
            charset="utf8mb4",
            autocommit=None,
            local_infile=False,
            connect_timeout=_NEVER_S,
            program_name="locus-mysql",
            ssl=self.tls,
        )
        if not config.pipeline:
            library._client_flag &= ~CLIENT_MULTI_STATEMENTS  # asyncmy always sets it
        library._secure = self.private  # before 0.2.14 it does not notice TLS, and then a full login fails
        before_login(library, self)
        await library.connect()
        after_login(library)

    def discard(self) -> None:
        """Detach the library, so that it cleans up nothing."""
        if self.library is not None:
            self.library._connected = False

    def transport(self) -> Any:
        """Return the library's transport; None while there is none."""
        transport = getattr(self.library, "_transport", None)
        if transport is None:  # before 0.2.12 it had a stream instead
            transport = getattr(getattr(self.library, "_writer", None), "transport", None)
        return transport


@imported_once
def _connection_class() -> Any:  # its type stub lacks what is used here
    from asyncmy.connection import Connection

    return Connection


DRIVER = LibraryDriver("asyncmy", None, AsyncmyConnection.open)
