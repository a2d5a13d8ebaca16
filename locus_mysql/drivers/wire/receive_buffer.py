"""Where an answer is received: into one buffer, until its reader can go on with it. No I/O.

A large row comes in many pieces: 16 KB each over TLS. Received one by one and joined, they take up to three times as
long as straight into the place where the whole will stand.
"""

from __future__ import annotations

from .results import ResultReader

#: What a connection keeps between answers: room for all of most answers.
_KEPT_BYTES = 65_536

#: There is always room for more than a TLS record has, so that none of one stays behind in the cipher.
_ROOM_BYTES = 20_480


class ReceiveBuffer:
    """The buffer of one connection."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_KEPT_BYTES))
        self._have = 0

    def room(self) -> memoryview:
        """Where what comes next is to be put."""
        return self._buffer[self._have :]

    def received(self, count: int, reader: ResultReader) -> bool:
        """Take what was put into the room; tell whether the answer is complete. Raises as `ResultReader.take` does.

        Args:
            count: How many bytes.
            reader: Of the answer.
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
