"""Code shared by PyMySQL, aiomysql and asyncmy: the latter two are asynchronous ports of PyMySQL.

Their connections share the attributes used here. Those that begin with an underscore are not public; they are what the
library calls before and during the login.
"""

from __future__ import annotations

from typing import Any

from ..wire.adapter import Adapter

CLIENT_SSL = 1 << 11
CLIENT_MULTI_STATEMENTS = 1 << 16


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
