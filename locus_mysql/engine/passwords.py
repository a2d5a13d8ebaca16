"""Passwords that a function returns for each new connection, such as tokens of a cloud's IAM: `open_connection`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from pydantic import SecretStr

from ..background_loop import in_thread, result_of
from ..drivers.interface import Driver, DriverError, ServerError
from ..drivers.wire.sockets import ResponsiveTimeout
from ..errors import ConfigError, LocusMySQLError
from ..options import ConnectionOptions, Endpoint, PasswordFunction, is_sendable
from .commands import AskPassword, CommandGenerator, Connect, Connection, StartServer

#: The server's error for a wrong password.
_ACCESS_DENIED = 1045

#: The name of the threads in which the function is called.
_THREAD = "locus-mysql password"


class NoPassword(DriverError):
    """The function that returns the password failed, or did not return in time. It may succeed later."""


def open_connection(driver: Driver, config: ConnectionOptions, endpoint: Endpoint) -> CommandGenerator[Connection]:
    """Open a connection; every connection of the engine is opened here.

    A password that the server refuses may have been replaced after the function returned it. So the function is called
    once more, and another password is tried. The same password is not tried again, because some servers lock an account
    after a few wrong passwords.

    Raises:
        DriverError: As `Driver.connect` does, and `NoPassword`.
        ConfigError: The function did not return text.
        SetupError, Unavailable: An embedded server did not start.
    """
    if config.embedded is not None:
        endpoint = yield StartServer(config)
    if isinstance(config.password, SecretStr):
        connection: Connection = yield Connect(driver, config, endpoint)
        return connection
    password = yield AskPassword(config)
    try:
        connection = yield Connect(driver, _with_password(config, password), endpoint)
    except ServerError as error:
        if error.errno != _ACCESS_DENIED:
            raise
        other = yield AskPassword(config)
        if other == password:
            raise
        connection = yield Connect(driver, _with_password(config, other), endpoint)
    return connection


def ask_password(config: ConnectionOptions) -> str:
    """Call the function that returns the password, in a thread, so that a function that hangs can be abandoned.

    Args:
        config: The options, with the function and its time limit ``connect_timeout_s``. An ``async`` function runs in
            the background loop.

    Raises:
        NoPassword: The function failed, or did not return in time.
        ConfigError: It returned no text.
    """
    call = _function(config)
    answer = in_thread(lambda: _call(call), _THREAD)
    try:
        password = answer.result(config.connect_timeout_s)
    except LocusMySQLError:
        raise
    except Exception as error:
        raise _failure(error, config, timed_out=not answer.done()) from error
    return _check_password(password)


async def ask_password_async(config: ConnectionOptions) -> str:
    """Like `ask_password`, in a task. An ``async`` function runs in this event loop, any other in a thread."""
    call = _function(config)
    try:
        async with ResponsiveTimeout(config.connect_timeout_s) as limit:
            if _is_async(call):
                password = await call()
            else:
                password = await asyncio.wrap_future(in_thread(call, _THREAD))
                if inspect.isawaitable(password):
                    password = await password
    except LocusMySQLError:
        raise
    except Exception as error:
        raise _failure(error, config, timed_out=limit.expired()) from error
    return _check_password(password)


def _function(config: ConnectionOptions) -> Callable[[], Any]:
    assert isinstance(config.password, PasswordFunction)  # noqa: S101 - `open_connection` has checked it
    return config.password.call


def _with_password(config: ConnectionOptions, password: str) -> ConnectionOptions:
    return config.model_copy(update={"password": SecretStr(password)})


def _is_async(call: Callable[[], Any]) -> bool:
    method = getattr(call, "__call__", None)  # noqa: B004 - of an object, it may be a coroutine function
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(method)


def _call(call: Callable[[], Any]) -> Any:
    """Call a function; if it returns an awaitable, run the awaitable."""
    password = call()
    return result_of(password) if inspect.isawaitable(password) else password


def _failure(error: Exception, config: ConnectionOptions, *, timed_out: bool) -> NoPassword:
    """Return the error to raise for an error of the function, whose text may contain secrets."""
    if timed_out:
        return NoPassword(f"The function given as password did not return within {config.connect_timeout_s:g} s.")
    return NoPassword(f"The function given as password raised {type(error).__name__}.")


def _check_password(password: object) -> str:
    if isinstance(password, SecretStr):
        password = password.get_secret_value()
    if not isinstance(password, str):
        raise ConfigError(f"The function given as password returned {type(password).__name__}; it must return text.")
    if not is_sendable(password):
        raise ConfigError("The function given as password returned text with NUL or lone surrogates.")
    return password
