r"""Statements as the bytes of one query packet, and the three commands that are sent after the login. No I/O.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html

The libraries' own parameters are not used: aiomysql 0.3.2 fails on every ``bytes`` with PyMySQL 1.2.3 and later
(https://github.com/aio-libs/aiomysql/issues/1080), PyMySQL sends bytes as hexadecimal (twice the size) and
takes 8 ms for the text of a state of 500 KB, which takes 0.15 ms here.

Only the quote and the backslash have a meaning inside a quoted MySQL string
(https://dev.mysql.com/doc/refman/9.0/en/string-literals.html). The quote is doubled rather than escaped, so a
value cannot leave its literal under any ``sql_mode``; connections set a mode under which it also arrives
unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ..interface import PacketTooLarge

if TYPE_CHECKING:
    from ...dialect.statement import Param, Statement


from typing import NamedTuple

#: The pieces of a longer statement are not cached: a long list of values rarely has the same length again.
REMEMBERED_CHARACTERS = 65_536


#: Upper estimate of the bytes of a query packet besides its text.
_COMMAND_BYTES = 16

#: The largest size that a header can announce. A longer packet is sent in parts, each after its own header.
LARGEST_PART = 0xFF_FFFF

_COM_QUERY = b"\x03"


def packets(statements: Sequence[Statement], *, pipeline: bool, limit_bytes: int) -> list[bytes]:
    """Return the texts of the query packets to send: a single one if all statements may share a packet and fit.

    Args:
        statements: Sent in this order.
        pipeline: Whether several statements may go in one packet.
        limit_bytes: The server's ``max_allowed_packet``.

    Raises:
        PacketTooLarge: A single statement does not fit.
    """
    limit_bytes -= _COMMAND_BYTES
    rendered = [_render_one(statement) for statement in statements]
    whole = rendered[0] if len(rendered) == 1 else b";".join(rendered)
    if len(whole) <= limit_bytes and (pipeline or len(rendered) == 1):
        return [whole] if rendered else []
    largest = max(map(len, rendered), default=0)
    if largest > limit_bytes:
        raise PacketTooLarge(largest + _COMMAND_BYTES, limit_bytes + _COMMAND_BYTES)
    return rendered


def literal(value: Param) -> bytes:
    """Return the SQL literal of one parameter.

    Raises:
        TypeError: The value has a type that is never stored here.
        InvalidInput: A text cannot be encoded.
    """
    if isinstance(value, int):
        return b"%d" % value
    if value is None:
        return b"NULL"
    if isinstance(value, str):
        return b"'%b'" % _escaped(_encoded(value))
    if isinstance(value, bytes):
        return b"_binary'%b'" % _escaped(value)
    raise TypeError(f"A parameter must be str, bytes, int or None, not {type(value).__name__}.")


def _encoded(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"A text of {len(value)} characters holds a lone surrogate at position {error.start}, which UTF-8 cannot "
            "hold; remove it. Nothing was sent."
        ) from None


def _escaped(value: bytes) -> bytes:
    return value.replace(b"\\", b"\\\\").replace(b"'", b"''")


def _render_one(statement: Statement) -> bytes:
    split = _remembered_pieces if len(statement.sql) <= REMEMBERED_CHARACTERS else _pieces
    pieces, params = split(statement.sql), statement.params
    if len(params) != len(pieces) - 1:
        raise TypeError(f"The statement has {len(pieces) - 1} placeholders, but {len(params)} were given.")
    if not params:
        return pieces[0]
    parts: list[bytes] = []
    for piece, value in zip(pieces, params, strict=False):
        parts.append(piece)
        if type(value) is bytes:
            parts += b"_binary'", value.replace(b"\\", b"\\\\").replace(b"'", b"''"), b"'"
        elif type(value) is str:
            parts += b"'", value.encode().replace(b"\\", b"\\\\").replace(b"'", b"''"), b"'"
        else:
            parts.append(literal(value))
    parts.append(pieces[-1])
    return b"".join(parts)


def _pieces(sql: str) -> tuple[bytes, ...]:
    return tuple(piece.encode() for piece in sql.split("%s"))


_remembered_pieces = lru_cache(maxsize=256)(_pieces)


class Command(NamedTuple):
    """One command, as it is sent.

    Args:
        wire: The bytes, headers included.
        answer_number: The number of the answer's first packet: numbering continues from the command's packets.
    """

    wire: bytes
    answer_number: int


#: The server answers with OK.
PING = Command(b"\x01\0\0\0\x0e", 1)

#: The server closes the connection.
QUIT = Command(b"\x01\0\0\0\x01", 1)


def query(statements: bytes) -> Command:
    """Return the command that runs statements; `results.ResultReader` reads its answer."""
    size = len(statements) + 1
    if size < LARGEST_PART:
        return Command(size.to_bytes(3, "little") + b"\0" + _COM_QUERY + statements, 1)
    return _in_parts(_COM_QUERY + statements)


def _in_parts(payload: bytes) -> Command:
    wire = []
    count = len(payload) // LARGEST_PART + 1  # a full last part is followed by an empty one
    for number in range(count):
        part = payload[number * LARGEST_PART : (number + 1) * LARGEST_PART]
        wire += [len(part).to_bytes(3, "little"), bytes((number % 256,)), part]
    return Command(b"".join(wire), count % 256)
