"""The buffer into which a connection receives answers: `ReceiveBuffer`. No I/O.

A large row arrives in many pieces: 16 KB each over TLS. Receiving and joining them takes up to three times as long as
receiving them into one buffer.
"""

from __future__ import annotations

from .results import ResultReader

#: Size that a connection keeps between answers, in bytes: most answers fit.
_KEPT_BYTES = 65_536

#: There is always room for a whole TLS record, so that no part of one stays behind in the TLS layer.
_ROOM_BYTES = 20_480


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
