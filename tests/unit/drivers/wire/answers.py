"""Encodes answers as a MySQL server sends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LARGEST = 2**24 - 1
MORE = 0x0008
AUTOCOMMIT = 0x0002

#: Column types with the character set that comes with them.
TEXT, BINARY, BIGINT, DECIMAL, DOUBLE = (252, 255), (252, 63), (8, 63), (246, 63), (5, 63)

Raw = bytes | None


@dataclass(frozen=True)
class Rows:
    """The result of a SELECT."""

    columns: Sequence[tuple[int, int]]
    rows: Sequence[Sequence[Raw]]


@dataclass(frozen=True)
class Done:
    """The result of any other statement."""

    affected: int = 0
    last_insert_id: int = 0


@dataclass(frozen=True)
class Refused:
    """An error instead of a result, or after some of its rows."""

    errno: int
    message: str
    after: Rows | None = None


Answer = Rows | Done | Refused


def integer(number: int) -> bytes:
    """Return a length-encoded integer."""
    if number < 251:
        return bytes((number,))
    for marker, size in ((0xFC, 2), (0xFD, 3), (0xFE, 8)):
        if number < 256**size:
            return bytes((marker,)) + number.to_bytes(size, "little")
    raise OverflowError


def text(value: Raw) -> bytes:
    return b"\xfb" if value is None else integer(len(value)) + value


def framed(payloads: Sequence[bytes], number: int = 1) -> bytes:
    """Return the payloads as packets, numbered from 1."""
    parts = []
    for payload in payloads:
        for begin in range(0, len(payload) + 1, LARGEST):
            part = payload[begin : begin + LARGEST]
            parts += [len(part).to_bytes(3, "little"), bytes((number % 256,)), part]
            number += 1
    return b"".join(parts)


def encoded(answers: Sequence[Answer], *, eof: bool = True, tracked: bytes = b"", number: int = 1) -> bytes:
    """Return the whole answer to a packet of statements.

    Args:
        answers: An answer for each statement.
        eof: Whether EOF packets follow columns and rows; otherwise, an OK packet follows the rows.
        tracked: Session information at the end of OK packets.
        number: The number of the first packet.
    """
    payloads: list[bytes] = []
    for index, answer in enumerate(answers):
        status = (AUTOCOMMIT | (MORE if index + 1 < len(answers) else 0)).to_bytes(2, "little")
        if isinstance(answer, Done):
            counts = integer(answer.affected) + integer(answer.last_insert_id)
            payloads.append(b"\0" + counts + status + b"\0\0" + tracked)
            continue
        rows = answer.after if isinstance(answer, Refused) else answer
        if rows is not None:
            payloads += [integer(len(rows.columns)), *(_column(*column) for column in rows.columns)]
            payloads += [b"\xfe\0\0" + status] * eof
            payloads += [b"".join(map(text, row)) for row in rows.rows]
        if isinstance(answer, Refused):
            payloads.append(b"\xff" + answer.errno.to_bytes(2, "little") + b"#HY000" + answer.message.encode())
            break
        payloads.append(b"\xfe\0\0" + status if eof else b"\xfe\0\0" + status + b"\0\0" + tracked)
    return framed(payloads, number)


def _column(kind: int, charset: int) -> bytes:
    names = b"".join(map(text, (b"def", b"schema", b"table", b"org_table", b"name", b"org_name")))
    return names + b"\x0c" + charset.to_bytes(2, "little") + b"\xff\xff\0\0" + bytes((kind,)) + b"\0\0\0\0\0"
