"""The three commands of MySQL's protocol that are sent after the login, as bytes. No I/O.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html
"""

from __future__ import annotations

from typing import NamedTuple

#: The largest size that a header can announce. A longer packet is sent in parts, each after its own header.
LARGEST_PART = 0xFF_FFFF

_COM_QUERY = b"\x03"


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
