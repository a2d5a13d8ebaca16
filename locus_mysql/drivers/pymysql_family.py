"""What PyMySQL, aiomysql and asyncmy have in common: the latter two are PyMySQL's code made asynchronous.

Their connections share the attributes used here. Those with an underscore are not public: a hook before the
login, and the result of the last statement, which ``query()`` keeps for the library's own cursors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Result
from .plain_login import check_plugin

CLIENT_SSL = 1 << 11
CLIENT_MULTI_STATEMENTS = 1 << 16
#: With it, asyncmy 0.2.18 takes a row whose first column has 16 MB or more for the end of the rows.
CLIENT_DEPRECATE_EOF = 1 << 24


def before_login(library: Any, judge: Callable[[str, bool], None], *, private_channel: bool) -> None:
    """Have ``judge(server_version, offers_tls)`` called between the server's greeting and the login.

    Args:
        library: The library's connection, not connected yet.
        judge: May raise, which ends the attempt before anything was sent.
        private_channel: False if the login is sent in plain text over a network. Then a server that asks for
        the
            password in clear text is refused, as MySQL's own client does.
    """
    log_in = library._request_authentication
    answer = library._process_auth

    def judged_login() -> Any:
        if not private_channel:
            check_plugin(getattr(library, "_server_auth_plugin", ""))  # aiomysql: what the greeting proposes
        offers_tls = bool(library.server_capabilities & CLIENT_SSL)
        library.server_capabilities &= ~CLIENT_DEPRECATE_EOF
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


async def query(library: Any, packet: bytes) -> list[Result]:
    """Send one packet and read every result, with aiomysql or asyncmy."""
    await library.query(packet)
    results, following = take_result(library, [])
    while following:
        await library.next_result()
        results, following = take_result(library, results)
    return results


def take_result(library: Any, results: list[Result]) -> tuple[list[Result], bool]:
    """Add the result just read to the results; also tell whether another one follows."""
    result = library._result
    following = bool(result.has_next)
    if not following:
        library._result = None  # else it would keep the rows until the next statement
    taken = Result((), result.affected_rows, result.insert_id) if result.rows is None else Result(result.rows)
    return [*results, taken], following
