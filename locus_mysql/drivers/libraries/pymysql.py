"""PyMySQL: blocking; its asynchronous side runs each connection in a thread of its own.

aiomysql and asyncmy are asynchronous ports of PyMySQL, and share `before_login` and `after_login`. The attributes that
begin with an underscore are not public; they are what the library calls before and during the login.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..interface import LibraryDriver
from ..login import imported_once
from ..wire.adapter import Adapter
from ..wire.blocking import SyncAdapter
from ..wire.sockets import connect
from ..wire.threaded import ThreadedConnection

CLIENT_SSL = 1 << 11
CLIENT_MULTI_STATEMENTS = 1 << 16


class PyMySQLConnection(SyncAdapter):
    """A connection of PyMySQL."""

    def log_in(self) -> None:
        """Log in with the library, on a socket with a deadline."""
        config, endpoint = self.config, self.endpoint
        self.library = _connection_class()(
            **self.address,
            password=config.password_text.encode(),  # a str would be sent as Latin-1
            database=config.database,
            charset="utf8mb4",
            client_flag=CLIENT_MULTI_STATEMENTS if config.pipeline else 0,
            autocommit=None,
            local_infile=False,
            program_name="locus-mysql",
            ssl=self.tls,
            ssl_disabled=self.tls is None,
            defer_connect=True,
        )
        self.library._secure = self.private  # PyMySQL finds this out only where it makes the socket itself
        before_login(self.library, self)
        self.library.connect(connect(endpoint, self.connected_by))
        after_login(self.library)

    def discard(self) -> None:
        """Detach the library, so that it cleans up nothing."""
        if self.library is not None:
            self.library._force_close()

    def socket(self) -> Any:
        """Return the library's socket; None while there is none."""
        return None if self.library is None else self.library._sock


@imported_once
def _connection_class() -> Any:
    from pymysql.connections import Connection

    return Connection


DRIVER = LibraryDriver("pymysql", PyMySQLConnection.open, partial(ThreadedConnection.open, PyMySQLConnection))


def before_login(library: Any, adapter: Adapter) -> None:
    """Let the adapter check the server after its greeting, and each authentication plugin that it asks for.

    Args:
        library: The library's connection, not connected yet.
        adapter: May raise, which ends the attempt before anything was sent.
    """
    log_in = library._request_authentication
    answer = library._process_auth

    def checked_login() -> Any:
        adapter.check_greeting(library.server_version, bool(library.server_capabilities & CLIENT_SSL))
        adapter.check_login(getattr(library, "_server_auth_plugin", ""))  # aiomysql: what the greeting proposes
        return log_in()

    def checked_answer(plugin: bytes, *request: Any) -> Any:  # PyMySQL 1.2.4 passes one argument more
        adapter.check_login(plugin.decode("latin-1"))
        return answer(plugin, *request)

    library._request_authentication = checked_login
    library._process_auth = checked_answer


def after_login(library: Any) -> None:
    """Remove the hooks, which would prevent the connection from being freed at once."""
    library.__dict__.pop("_request_authentication", None)
    library.__dict__.pop("_process_auth", None)
