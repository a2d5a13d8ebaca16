"""A function given as password is called for each new connection, on either side, and cannot hang a call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from locus_mysql.config import MySQLConfig
from locus_mysql.drivers.interface import ServerError
from locus_mysql.engine.failures import explain, may_pass
from locus_mysql.engine.passwords import NoPassword, open_connection
from locus_mysql.engine.retry import Retry
from locus_mysql.errors import AuthenticationFailed, ConfigError, Unavailable

from . import scripted

pytestmark = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])

SECRET = "correct horse"


class Server(scripted.Driver):
    """Accepts one password, and records those that it received."""

    def __init__(self, accepted: str) -> None:
        super().__init__()
        self.accepted = accepted
        self.received: list[str] = []

    def _open(self, config: Any, endpoint: Any, kind: Any) -> Any:
        self.received.append(config.password.get_secret_value())
        if self.received[-1] != self.accepted:
            raise ServerError(1045, "Access denied")
        return super()._open(config, endpoint, kind)


async def open_at(server: Any, password: Any, *, awaited: bool, connect_timeout_s: float = 60.0) -> Any:
    config = MySQLConfig(host="a", password=password, connect_timeout_s=connect_timeout_s)
    return await scripted.run(open_connection(server, config, config.endpoints[0]), awaited=awaited)


def as_text() -> str:
    return SECRET


def as_secret() -> SecretStr:
    return SecretStr(SECRET)


async def later() -> str:
    await asyncio.sleep(0)
    return SECRET


class Source:
    async def __call__(self) -> str:
        return SECRET


@pytest.mark.parametrize("function", [as_text, as_secret, later, Source(), lambda: later()])
async def test_each_kind_of_function_gives_the_password(awaited: bool, function: Callable[[], Any]) -> None:
    server = Server(SECRET)
    for _ in range(2):
        await open_at(server, function, awaited=awaited)
    assert server.received == [SECRET] * 2


async def test_a_function_that_blocks_runs_in_another_thread_and_an_async_one_in_the_event_loop(awaited: bool) -> None:
    threads = []

    def blocking() -> str:
        threads.append(threading.current_thread())
        return SECRET

    async def awaitable() -> str:
        threads.append(threading.current_thread())
        return SECRET

    for function in (blocking, awaitable):
        await open_at(Server(SECRET), function, awaited=awaited)
    here = threading.current_thread()
    assert [thread is here for thread in threads] == [False, awaited]


async def test_a_password_that_was_replaced_meanwhile_is_asked_for_once_more(awaited: bool) -> None:
    passwords = iter(["old", "new", "newest"])
    server = Server("new")
    await open_at(server, lambda: next(passwords), awaited=awaited)
    assert server.received == ["old", "new"]
    with pytest.raises(ServerError):  # there is no third attempt
        await open_at(Server("nobody's"), iter(["a", "b", "c"]).__next__, awaited=awaited)


async def test_a_wrong_password_is_sent_once_if_the_function_has_no_other(awaited: bool) -> None:
    server, asked = Server("another"), []

    def function() -> str:
        asked.append(1)
        return SECRET

    with pytest.raises(ServerError) as caught:
        await open_at(server, function, awaited=awaited)
    assert (server.received, len(asked)) == ([SECRET], 2)
    assert isinstance(explain(caught.value, MySQLConfig()), AuthenticationFailed)


async def test_a_password_function_that_fails_is_called_again_later_and_its_message_is_not_shown(awaited: bool) -> None:
    def function() -> str:
        raise OSError(f"no route for {SECRET}")

    with pytest.raises(NoPassword) as caught:
        await open_at(Server(SECRET), function, awaited=awaited)
    config = MySQLConfig()
    assert str(caught.value) == "The function given as password raised OSError."
    assert may_pass(caught.value, config)
    explained = explain(caught.value, config)
    assert isinstance(explained, Unavailable)
    assert SECRET not in str(explained)
    with pytest.raises(Unavailable):  # immediately, like any first connection
        Retry(config, reached_before=False).wait_after(caught.value)
    retry = Retry(config, reached_before=True)
    assert retry.wait_after(caught.value) > 0
    assert not retry.fate_unknown


async def test_a_function_that_hangs_is_given_up_after_the_limit_for_connecting(awaited: bool) -> None:
    ends = threading.Event()

    async def hanging() -> str:
        await asyncio.Event().wait()
        return SECRET

    with pytest.raises(NoPassword, match=r"did not return within 0\.01 s"):
        await open_at(Server(SECRET), lambda: str(ends.wait(60)), awaited=awaited, connect_timeout_s=0.01)
    ends.set()
    with pytest.raises(NoPassword, match=r"did not return within 0\.01 s"):
        await open_at(Server(SECRET), hanging, awaited=awaited, connect_timeout_s=0.01)


@pytest.mark.parametrize(
    ("returned", "message"),
    [(None, "returned NoneType; it must"), (SECRET.encode(), "returned bytes; it must"), (f"{SECRET}\0", "with NUL")],
)
async def test_a_result_that_is_no_text_is_refused_and_not_shown(awaited: bool, returned: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        await open_at(Server(SECRET), lambda: returned, awaited=awaited)
    assert SECRET not in str(caught.value)
