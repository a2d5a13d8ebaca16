"""Reading results from the bytes a server sends: MySQL's text protocol, without I/O.

The libraries do not read them: Connector/Python awaits each packet's header and body in turn, twice for every row, and
with every library this takes most of the client's time for a small result.

It reads the answers of every supported server, whatever capabilities the library negotiated: with an EOF packet after
columns and rows or without (``CLIENT_DEPRECATE_EOF``), with or without session information. Unknown data is an error,
and the connection is dropped. https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TypeAlias

from ..interface import Result, Row, Value
from .literals import LARGEST_PART

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


#: Size that a connection keeps between answers, in bytes: most answers fit.
_KEPT_BYTES = 65_536

#: There is always room for a whole TLS record, so that no part of one stays behind in the TLS layer.
_ROOM_BYTES = 20_480


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


#: The header: size and number. With it the first byte of the packet, which shows its kind.
_HEADER_BYTES = 4
_BEGINNING_BYTES = _HEADER_BYTES + 1

_OK, _LOCAL_FILE, _END, _ERROR = 0x00, 0xFB, 0xFE, 0xFF
_NULL, _TWO_BYTES = 0xFB, 0xFC
_MORE_RESULTS = 0x08

#: An EOF packet has just these; an OK packet in its place has more, and a row that begins with the same byte has a
#: value of 16 MB.
_EOF_BYTES = 5

#: An error packet without its message.
_ERROR_BYTES = 9

#: The end of a column's definition has a fixed form, and begins with its own length.
_FIXED_BYTES = 13
_FIXED_LENGTH = 0x0C

#: A buffer that is reused, so values read from it must be copied.
Bytes: TypeAlias = bytes | memoryview

_Decoder: TypeAlias = Callable[[Bytes], Value]

#: Handles one packet: the bytes that contain it, and its position there.
_Step: TypeAlias = Callable[["ResultReader", Bytes, int, int], None]


#: Definitions of columns as they came before, with what decodes their values, by the number of columns: those of a
#: statement are the same bytes every time. Replaced, never changed, as threads share it.
_definitions: dict[int, tuple[tuple[bytes, tuple[_Decoder, ...]], ...]] = {}

#: Definitions are kept of results of up to 64 columns: the last 4 for each number of columns, of at most 8 KiB each.
_COLUMNS_KEPT, _DEFINITIONS_KEPT, _DEFINITION_BYTES = 64, 4, 8_192


class ErrorPacket(Exception):
    """The server answered with an error.

    Args:
        errno: MySQL's error number.
        msg: The server's own message.
        in_turn: False if the packet had another number than expected: it may not answer the command, but be the
            server's last message before it closes the connection.
        statement_index: The number of statements that succeeded before the one that failed.
    """

    def __init__(self, errno: int, msg: str, *, in_turn: bool = True, statement_index: int = 0) -> None:
        super().__init__(errno, msg)
        self.statement_index = statement_index
        self.errno = errno
        self.msg = msg
        self.in_turn = in_turn

    def __str__(self) -> str:
        return f"{self.errno}: {self.msg}"


class ProtocolSurprise(ConnectionError):
    """The bytes are not an answer to a query: all later data on the connection is unreliable."""


def why_unexpected(data: bytes) -> str:
    """Return why a connection with unsolicited data ends.

    Args:
        data: The data; empty if the server closed the connection.
    """
    if not data:
        return "the server closed the connection"
    try:
        ResultReader(0).take(data)
    except (ErrorPacket, ProtocolSurprise) as word:
        return str(word)
    return "the server sent unexpected data"


class ResultReader:
    """Reads the answer to one command.

    Args:
        number: The number that the answer's first packet must have.
    """

    def __init__(self, number: int = 1) -> None:
        #: One for each statement, once the answer is ``complete``.
        self.results: list[Result] = []
        self.complete = False
        #: The number of bytes that `take` needs to make progress.
        self.needed = _BEGINNING_BYTES
        self._number = number
        self._parts: list[bytes] = []  # of a packet too large for one header
        self._take: _Step = ResultReader._take_first  # not a bound method, which would make a cycle
        self._columns = 0
        self._decoders: tuple[_Decoder, ...] = ()
        self._definition_in: Bytes = b""  # the bytes with the definitions of the columns, and their position there
        self._definition_at = 0
        self._known_until = 0  # the end of known definitions
        self._rows: list[Row] = []
        self._refusal: tuple[int, str] | None = None
        self._in_turn = True

    def take(self, data: Bytes) -> int:
        """Read every whole packet; return their size in bytes. Pass the bytes after them again, with more.

        Args:
            data: Bytes that were received and not read before, at least ``needed``.

        Raises:
            ErrorPacket: The server refused a statement; the answer ends here.
            ProtocolSurprise: The bytes are not an answer.
        """
        try:
            start = self._take_packets(data)
        except (IndexError, ValueError, ArithmeticError):  # ArithmeticError: an invalid decimal number
            raise ProtocolSurprise("a packet that cannot be read") from None
        if not self.complete:
            self.needed = self._size_of_packet(data, start)
        elif start != len(data):
            raise ProtocolSurprise("more than an answer")
        elif self._refusal is not None:
            raise ErrorPacket(*self._refusal, in_turn=self._in_turn, statement_index=len(self.results))
        return start

    def _take_packets(self, data: Bytes) -> int:
        """Take every whole packet; return where the rest begins."""
        number = self._number
        body = _HEADER_BYTES
        last = len(data)
        while body <= last and not self.complete:
            size = data[body - 4] | data[body - 3] << 8 | data[body - 2] << 16
            stop = body + size
            if stop > last:
                break
            if data[body - 1] != number:
                self._refuse_unless_error(data[body])
            number = (number + 1) & 0xFF
            if size == LARGEST_PART or self._parts:
                self._take_part(bytes(data[body:stop]))
            elif size:
                self._take(self, data, body, stop)
                if self._known_until:
                    stop, self._known_until = self._known_until, 0
                    number = (number + self._columns) & 0xFF
            else:
                raise ProtocolSurprise("an empty packet")
            body = stop + _HEADER_BYTES
        self._number = number
        return body - _HEADER_BYTES

    def _size_of_packet(self, data: Bytes, start: int) -> int:
        """Return the size in bytes of a packet of which only the beginning has arrived."""
        if start + _BEGINNING_BYTES > len(data):
            return _BEGINNING_BYTES
        if data[start + 3] != self._number:
            self._refuse_unless_error(data[start + 4])
        return _HEADER_BYTES + (data[start] | data[start + 1] << 8 | data[start + 2] << 16)

    def _refuse_unless_error(self, kind: int) -> None:
        """Refuse a packet of an unexpected number, unless it is the server's last message, as when it shuts down."""
        if kind != _ERROR:
            raise ProtocolSurprise("a packet out of order")
        self._in_turn = False

    def _take_part(self, part: bytes) -> None:
        self._parts.append(part)
        if len(part) < LARGEST_PART:
            whole = b"".join(self._parts)
            self._parts = []
            self._take(self, whole, 0, len(whole))

    def _take_first(self, data: Bytes, start: int, stop: int) -> None:
        """The first packet of a result: OK, an error, or the number of columns."""
        kind = data[start]
        if kind == _OK:
            affected, last_insert_id, status = _ok(data, start, stop)
            self._add(Result((), affected, last_insert_id), status)
        elif kind == _ERROR:
            self._take_error(bytes(data[start:stop]))
        elif kind in {_LOCAL_FILE, _END}:
            raise ProtocolSurprise("neither rows nor their absence")
        else:
            number = (data[start - 1] + 1) & 0xFF  # of the packet that follows
            self._columns, start = _integer(data, start)
            if start != stop:
                raise ProtocolSurprise("a number of columns that is none")
            self._decoders, self._rows = (), []
            self._take = ResultReader._take_column
            self._definition_in, self._definition_at = data, stop
            self._recognise_columns(data, stop, number)

    def _recognise_columns(self, data: Bytes, start: int, number: int) -> None:
        """Skip definitions of columns that were read before as the same bytes, including the packets' numbers."""
        for definition, decoders in _definitions.get(self._columns, ()):
            end = start + len(definition)
            if definition[_HEADER_BYTES - 1] == number and data[start:end] == definition:
                self._decoders, self._known_until = decoders, end
                self._take = ResultReader._take_end_of_columns
                return

    def _take_column(self, data: Bytes, start: int, stop: int) -> None:
        fixed = stop - _FIXED_BYTES
        if fixed < start or data[fixed] != _FIXED_LENGTH:
            raise ProtocolSurprise("a column's definition that is none")
        self._decoders = (*self._decoders, decoder(data[fixed + 7], data[fixed + 1] | data[fixed + 2] << 8))
        if len(self._decoders) == self._columns:
            self._take = ResultReader._take_end_of_columns
            if self._definition_in is data:
                self._remember_columns(bytes(data[self._definition_at : stop]))

    def _remember_columns(self, definition: bytes) -> None:
        if self._columns <= _COLUMNS_KEPT and len(definition) <= _DEFINITION_BYTES:
            others = _definitions.get(self._columns, ())[: _DEFINITIONS_KEPT - 1]
            _definitions[self._columns] = ((definition, self._decoders), *others)

    def _take_end_of_columns(self, data: Bytes, start: int, stop: int) -> None:
        """Take the EOF packet after the columns. Without EOF packets, a row or the end of the rows follows here."""
        self._take = ResultReader._take_row
        if data[start] != _END or stop - start != _EOF_BYTES:
            self._take_row(data, start, stop)

    def _take_row(self, data: Bytes, start: int, stop: int) -> None:
        kind = data[start]
        if kind < _END or stop - start >= LARGEST_PART:
            self._rows.append(_row(data, start, stop, self._decoders))
        elif kind == _END:
            self._take_end_of_rows(data, start, stop)
        else:
            self._take_error(bytes(data[start:stop]))

    def _take_end_of_rows(self, data: Bytes, start: int, stop: int) -> None:
        status = data[start + 3] if stop - start == _EOF_BYTES else _ok(data, start, stop)[2]
        self._add(Result(self._rows, 0, 0, self._columns), status)

    def _take_error(self, packet: bytes) -> None:
        """``ff``, the number, ``#`` with five characters of state, and the message."""
        number = int.from_bytes(packet[1:3], "little")
        if len(packet) < _ERROR_BYTES or packet[3:4] != b"#" or not number:
            raise ProtocolSurprise("an error that cannot be read")
        self._refusal = number, packet[_ERROR_BYTES:].decode(errors="replace")
        self.complete = True

    def _add(self, result: Result, status: int) -> None:
        self.results.append(result)
        self._take = ResultReader._take_first
        self.complete = not status & _MORE_RESULTS


def _ok(data: Bytes, start: int, stop: int) -> tuple[int, int, int]:
    """Rows affected, the last id, and the first byte of the status."""
    affected, last_insert_id = data[start + 1], data[start + 2]
    if affected < _NULL and last_insert_id < _NULL:  # as `_integer` would
        start += 3
    else:
        affected, start = _integer(data, start + 1)
        last_insert_id, start = _integer(data, start)
    if start + 2 > stop:
        raise ProtocolSurprise("an OK that is cut short")
    return affected, last_insert_id, data[start]


def _row(data: Bytes, start: int, stop: int, decoders: tuple[_Decoder, ...]) -> Row:
    values: list[Value] = []
    for decode in decoders:
        size = data[start]
        if size < _NULL:
            start += 1
        elif size == _NULL:
            values.append(None)
            start += 1
            continue
        elif size == _TWO_BYTES:  # as `_integer` would
            size = data[start + 1] | data[start + 2] << 8
            start += 3
        else:
            size, start = _integer(data, start)
        end = start + size
        values.append(decode(data[start:end]))
        start = end
    if start != stop:
        raise ProtocolSurprise("a row of another size")
    return tuple(values)


def _integer(data: Bytes, start: int) -> tuple[int, int]:
    """Return a length-encoded integer, and the position after it."""
    first = data[start]
    if first < _NULL:
        return first, start + 1
    if first in {_NULL, _ERROR}:
        raise ProtocolSurprise("a number that is none")
    end = start + 1 + (2, 3, 8)[first - _TWO_BYTES]
    return int.from_bytes(data[start + 1 : end], "little"), end


class ReceiveBuffer:
    """The buffer of one connection."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_KEPT_BYTES))
        self._have = 0

    def room(self) -> memoryview:
        """The free part of the buffer, for the bytes that arrive next."""
        return self._buffer[self._have :]

    def received(self, count: int, reader: ResultReader) -> bool:
        """Read bytes that were put into `room`; return whether the answer is complete. Raises as `ResultReader.take`.

        Args:
            count: Their number.
            reader: Reads the answer.
        """
        self._have += count
        have, buffer = self._have, self._buffer
        used = 0
        if have >= reader.needed:
            self._have = 0  # also if it raises
            # Small values are cut out of bytes in less time than out of a buffer.
            used = reader.take(bytes(buffer[:have]) if have <= _KEPT_BYTES else buffer[:have])
        if reader.complete:
            if len(buffer) > _KEPT_BYTES:
                self._buffer = memoryview(bytearray(_KEPT_BYTES))
            return True
        rest = buffer[used:have]
        room_for = max(reader.needed, have - used) + _ROOM_BYTES
        if room_for > len(buffer):
            self._buffer = memoryview(bytearray(room_for))
        if used or self._buffer is not buffer:
            self._buffer[: len(rest)] = rest
        self._have = len(rest)
        return False
