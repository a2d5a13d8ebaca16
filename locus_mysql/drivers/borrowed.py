"""Connections that a program lends: `Borrowed` sends one statement at a time by the library that opened the connection.

The library's own call is used, not its socket: the C extension of Connector/Python shows none. Values are read as they
were sent, and decoded as those of our own connections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from ..errors import ConfigError
from .interface import Result, Row
from .wire.results import decoder

#: Makes what a generator yields of a call of the library, which returns a value or an awaitable.
Wait: TypeAlias = Callable[[Callable[[], Any]], Any]

#: Yields calls of the library, and receives what they return.
Calls: TypeAlias = Generator[Any, Any, Result]

#: In the message about an UPDATE: the rows that changed. With CLIENT_FOUND_ROWS, which SQLAlchemy sets, the number of
#: affected rows counts all that matched. `ROW_COUNT()` does too; our statements change each row that they match.
_CHANGED = re.compile(rb"Changed: (\d+)")


class Borrowed:
    """A connection that a program lends.

    Args:
        connection: A connection of a supported library, or SQLAlchemy's.

    Raises:
        ConfigError: It is something else.
    """

    def __init__(self, connection: object) -> None:
        self._lent: Any = getattr(connection, "sync_connection", connection)
        self._by_sqlalchemy = hasattr(self._lent, "get_transaction")
        self._connection: Any = _unwrapped(connection)
        modules = [one.__module__ for one in type(self._connection).__mro__]
        found = next((_LIBRARIES[module] for module in modules if module in _LIBRARIES), None)
        if found is None:
            raise ConfigError(
                f"A {type(connection).__module__}.{type(connection).__name__} is no connection that can be used. Give "
                "an open connection of mysql-connector, PyMySQL, aiomysql or asyncmy, or SQLAlchemy's, which has one."
            )
        self.blocks, self._query, self._drop, self._is_open = found
        self._transaction = self._lent.get_transaction() if self._by_sqlalchemy else None
        self._was_open = bool(self._is_open(self._connection))

    def query(self, statement: bytes, wait: Wait) -> Calls:
        """Send a statement; return its result. Raises the library's errors."""
        result = yield from self._query(self._connection, statement, wait)
        self._was_open = self._was_open or bool(self._is_open(self._connection))
        return result

    def has_ended(self) -> bool:
        """Return whether the transaction that was lent has ended, as far as the client knows; sends nothing.

        The server says with each answer whether a transaction is open. Only SQLAlchemy knows which one.
        """
        if self._by_sqlalchemy:
            if self._lent.closed or self._lent.invalidated:
                return True
            now = self._lent.get_transaction()
            self._transaction = self._transaction or now
            if now is not self._transaction:
                return True
        elif _unwrapped(self._lent) is not self._connection:
            return True
        return self._was_open and not self._is_open(self._connection)

    def can_commit(self) -> bool:
        """Return False for a connection of SQLAlchemy without a transaction: its ``commit`` would do nothing."""
        return not self._by_sqlalchemy or self._lent.get_transaction() is not None

    def drop(self) -> None:
        """Close the socket at once, which undoes the transaction; never raises."""
        with suppress(Exception):
            self._drop(self._connection)


def _unwrapped(connection: Any) -> Any:
    """Return the connection of the client library in one of SQLAlchemy, or of Connector/Python's pool."""
    if type(connection).__module__.startswith("sqlalchemy."):
        for name in ("sync_connection", "driver_connection", "connection"):
            inner = getattr(connection, name, None)
            if inner is not None and not callable(inner):
                return _unwrapped(inner)
    return getattr(connection, "_cnx", connection)


def _ask_pymysql(options: tuple[str, str], library: Any, statement: bytes, wait: Wait) -> Calls:
    """Send a statement by PyMySQL, or one of its ports.

    Args:
        options: The attributes that say whether text is decoded, and how each type is.
        library: The connection.
        statement: The statement.
        wait: See `Wait`.
    """
    decodes, decoders = options
    before = getattr(library, decodes), getattr(library, decoders)
    setattr(library, decodes, False)
    setattr(library, decoders, {})
    try:
        yield wait(partial(library.query, statement))
    finally:
        setattr(library, decodes, before[0])
        setattr(library, decoders, before[1])
    answer = library._result
    if answer.rows is None:
        return _changed(answer.affected_rows, answer.insert_id, answer.message)
    return _read(answer.rows, [(field.type_code, field.charsetnr) for field in answer.fields])


def _ask_connector(library: Any, statement: bytes, wait: Wait) -> Calls:
    answer = yield wait(partial(library.cmd_query, statement, raw=True))
    if "columns" not in answer:
        return _changed(answer["affected_rows"], answer["insert_id"], answer.get("info_msg", "").encode())
    columns = [(column[1], column[8]) for column in answer["columns"]]
    rows, _ = yield wait(partial(library.get_rows, raw=True))
    return _read(rows, columns)


def _changed(affected: int, last_insert_id: int, message: bytes | None) -> Result:
    changed = _CHANGED.search(message or b"")
    return Result((), int(changed[1]) if changed else affected, last_insert_id)


def _read(rows: Sequence[Sequence[bytes | None]], columns: Sequence[tuple[int, int]]) -> Result:
    decoders = [decoder(*column) for column in columns]
    read: list[Row] = [
        tuple([None if value is None else decode(bytes(value)) for decode, value in zip(decoders, row, strict=True)])
        for row in rows
    ]
    return Result(read, 0, 0, len(columns))


#: By the module of the connection's class: whether its calls block, how to send a statement, how to close the socket,
#: and whether the server's last answer said that a transaction is open.
_LIBRARIES: dict[
    str, tuple[bool, Callable[[Any, bytes, Wait], Calls], Callable[[Any], object], Callable[[Any], bool | int]]
] = {
    "pymysql.connections": (
        True,
        partial(_ask_pymysql, ("use_unicode", "decoders")),
        lambda it: it._force_close(),
        lambda it: it.server_status & 1,
    ),
    "aiomysql.connection": (
        False,
        partial(_ask_pymysql, ("use_unicode", "decoders")),
        lambda it: it.close(),
        lambda it: it.get_transaction_status(),
    ),
    "asyncmy.connection": (
        False,
        partial(_ask_pymysql, ("_use_unicode", "_decoders")),
        lambda it: it.close(),
        lambda it: it.get_transaction_status(),
    ),
    "mysql.connector.connection": (True, _ask_connector, lambda it: it.shutdown(), lambda it: it.in_transaction),
    "mysql.connector.connection_cext": (True, _ask_connector, lambda it: it.shutdown(), lambda it: it.in_transaction),
    "mysql.connector.aio.connection": (
        False,
        _ask_connector,
        lambda it: it._socket._writer.transport.abort(),
        lambda it: it.in_transaction,
    ),
}
