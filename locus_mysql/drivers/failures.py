"""The meaning of a library's exceptions: one map for all libraries, by MySQL error number."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from ..config import Endpoint
from ..errors import ConfigError, DriverMissing, LocusMySQLError
from .interface import ConnectionLost, DriverError, ServerError
from .login import NoTLSOffered
from .wire.results import ErrorPacket

#: Errors that the server sends before it closes a connection: because it shuts down, the connection was killed, is idle
#: or sent unreadable data. https://dev.mysql.com/doc/mysql-errors/9.0/en/server-error-reference.html
GOODBYES = frozenset((1053, 1077, 1079, 1080, 1152, 1154, 1155, 1158, 1159, 1160, 1161, 1927, 3169, 4031))

#: Errors after which the server closes the connection: packet too large, packets out of order, malformed
#: packet, too much memory of all connections or of this one; a statement of `init_connect` failed.
_LAST_WORDS = frozenset((1153, 1156, 1184, 1835, 4081, 4082))

#: Connector/Python uses the number 3024 for its own time-outs; on the server it means that a query ran too long.
_TIMEOUTS = frozenset(("ReadTimeoutError", "WriteTimeoutError", "ConnectionTimeoutError"))

#: The numbers of client libraries' errors. Proxies send them as a server's.
_CLIENT_ERRORS = range(2000, 3000)

#: Errors that neither a network nor a server raises.
_OF_CLIENT = (TypeError, ValueError, AttributeError)


def translate(error: Exception, endpoint: Endpoint, *, connecting: bool = False) -> Exception:
    """Return this package's exception for a library's.

    Raise it ``from None``, as the library's may contain parts of packets.

    Args:
        error: The library's exception.
        endpoint: The server's address, for the message.
        connecting: True while no connection exists yet.
    """
    if isinstance(error, DriverError | LocusMySQLError | NoTLSOffered):
        return error
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return ConfigError(
            f"The certificate of the server at {endpoint} is not trusted: {_certificate_problem(error)}. "
            "Check ssl_ca and the host name, or lower ssl_mode."
        )
    if isinstance(error, RuntimeError | ImportError) and "cryptography" in str(error):
        return DriverMissing(
            "Logging in without TLS needs the package cryptography to encrypt the password. "
            "Run pip install cryptography, or use TLS."
        )
    number = _server_number(error)
    in_turn = getattr(error, "in_turn", True) or number in _LAST_WORDS
    if number is not None and number not in GOODBYES and in_turn:
        return ServerError(number, _server_message(error))
    action = "Cannot connect to" if connecting else "Lost the connection to"
    return ConnectionLost(
        f"{action} MySQL at {endpoint}: {_reason(error, connecting=connecting)}.",
        connecting=connecting,
        timed_out=_is_timeout(error),
        of_client=isinstance(error, _OF_CLIENT),
    )


def ends_connection(error: Exception) -> bool:
    """Check whether nothing can be sent after this (translated) error."""
    return not isinstance(error, ServerError) or error.errno in _LAST_WORDS


def _server_number(error: Exception) -> int | None:
    """Return the server's error number; None if the number is the client library's, or there is none."""
    if isinstance(error, ErrorPacket):
        return None if error.errno in _CLIENT_ERRORS else error.errno
    if isinstance(error, OSError) or type(error).__name__ in _TIMEOUTS:
        return None
    number = getattr(error, "errno", None)  # Connector/Python
    if number is None and error.args:
        number = error.args[0]  # PyMySQL, aiomysql, asyncmy
    if isinstance(number, int) and number >= 1000 and number not in _CLIENT_ERRORS:
        return number
    return None


def _server_message(error: Exception) -> str:
    message = getattr(error, "msg", None)
    if message is None and len(error.args) > 1:
        message = error.args[1]
    return str(message or "no message")


def _reason(error: Exception, *, connecting: bool) -> str:
    """Return why the call failed, as text without any part of a packet of statements."""
    if _is_timeout(error):
        return "no answer within the time limit"
    numbered = getattr(error, "errno", None) or (error.args and isinstance(error.args[0], int) and error.args[0])
    if isinstance(error, OSError) or numbered:
        return str(error).rstrip(".") or type(error).__name__
    if connecting and type(error) in _OF_CLIENT:  # not of a UnicodeError, which shows what it cannot encode
        return f"{type(error).__name__}: {str(error)[:200].rstrip('.')}"
    return type(error).__name__


def _is_timeout(error: Exception) -> bool:
    return isinstance(error, TimeoutError) or type(error).__name__ in _TIMEOUTS


def _certificate_problem(error: Exception) -> str:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message.rstrip(".")
    return "verification failed"


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    for _ in range(8):  # a chain of causes may be circular
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__
