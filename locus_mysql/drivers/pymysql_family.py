"""What PyMySQL, aiomysql and asyncmy have in common: the latter two are PyMySQL's code made asynchronous.

Their connections share the attributes used here. Those with an underscore are not public: what is called before and
during the login.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .plain_login import check_plugin

CLIENT_SSL = 1 << 11
CLIENT_MULTI_STATEMENTS = 1 << 16


def before_login(library: Any, judge: Callable[[str, bool], None], *, private_channel: bool) -> None:
    """Have ``judge(server_version, offers_tls)`` called between the server's greeting and the login.

    Args:
        library: The library's connection, not connected yet.
        judge: May raise, which ends the attempt before anything was sent.
        private_channel: False if the login is sent in plain text over a network. Then a server that asks for the
            password in clear text is refused, as MySQL's own client does.
    """
    log_in = library._request_authentication
    answer = library._process_auth

    def judged_login() -> Any:
        if not private_channel:
            check_plugin(getattr(library, "_server_auth_plugin", ""))  # aiomysql: what the greeting proposes
        offers_tls = bool(library.server_capabilities & CLIENT_SSL)
        judge(library.server_version, offers_tls)
        return log_in()

    def guarded_answer(plugin: bytes, *request: Any) -> Any:  # PyMySQL 1.2.4 passes one argument more
        if not private_channel:
            check_plugin(plugin.decode("latin-1"))
        return answer(plugin, *request)

    library._request_authentication = judged_login
    library._process_auth = guarded_answer


def after_login(library: Any) -> None:
    """Take the hooks out; they would keep the connection from being freed at once."""
    library.__dict__.pop("_request_authentication", None)
    library.__dict__.pop("_process_auth", None)
