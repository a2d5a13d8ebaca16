"""Decoding of column values, the same for every library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from ..interface import Value

#: Numbers of the column types, https://dev.mysql.com/doc/dev/mysql-server/latest/field__types_8h.html
_DECIMAL, _TINY, _SHORT, _LONG, _FLOAT, _DOUBLE, _TIMESTAMP, _LONGLONG, _INT24 = 0, 1, 2, 3, 4, 5, 7, 8, 9
_DATETIME, _YEAR, _BIT, _JSON, _NEWDECIMAL = 12, 13, 16, 245, 246
_VARCHAR, _VECTOR, _TINY_BLOB, _MEDIUM_BLOB, _LONG_BLOB, _BLOB = 15, 242, 249, 250, 251, 252
_VAR_STRING, _STRING, _GEOMETRY = 253, 254, 255

#: Types whose values are bytes if their character set is 63, "binary", and text otherwise. JSON columns have 63 as
#: well, but are always text in UTF-8.
_TEXT_OR_BYTES = frozenset(
    (_VARCHAR, _BIT, _VECTOR, _TINY_BLOB, _MEDIUM_BLOB, _LONG_BLOB, _BLOB, _VAR_STRING, _STRING, _GEOMETRY)
)
_BINARY = 63


def parse_datetime(text: str) -> datetime | str:
    """A DATETIME or TIMESTAMP; ``0000-00-00`` and its like, which no ``datetime`` can hold, stay text."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _text(raw: bytes | memoryview) -> str:
    return str(raw, "utf-8")


_DECODERS: Mapping[int, Callable[[bytes | memoryview], Value]] = {
    **dict.fromkeys((_TINY, _SHORT, _LONG, _LONGLONG, _INT24, _YEAR), int),
    **dict.fromkeys((_FLOAT, _DOUBLE), float),
    **dict.fromkeys((_DECIMAL, _NEWDECIMAL), lambda raw: Decimal(_text(raw))),
    **dict.fromkeys((_TIMESTAMP, _DATETIME), lambda raw: parse_datetime(_text(raw))),
}


def decoder(column_type: int, charset: int) -> Callable[[bytes | memoryview], Value]:
    """Return the function that decodes a column's bytes.

    Args:
        column_type: The number of its type.
        charset: The number of its collation.
    """
    if charset == _BINARY and column_type in _TEXT_OR_BYTES:
        return bytes
    return _DECODERS.get(column_type, _text)
