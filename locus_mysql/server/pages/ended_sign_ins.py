"""`EndedSignIns`: the sign-ins that users ended, shared by all workers of the service.

Any worker may receive a user's request, and a cookie that was signed out must not be valid in another worker. So ended
sign-ins are written to an unnamed file that workers inherit when they are forked: each appends to it, and reads what
others have appended. The file does not outlive the service, and neither does a generated cookie key.
"""

from __future__ import annotations

import os
import struct
import tempfile
import threading
import time
import weakref
from typing import BinaryIO

from ...engine.at_fork import reset_at_fork

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, which has no workers
    fcntl = None  # type: ignore[assignment]  # to mypy a name of a module stays one

#: A record of the file: nonce and end of a sign-in.
_RECORD = struct.Struct("<16sq")


class EndedSignIns:
    """The nonces of ended sign-ins, kept until the sign-ins would have expired."""

    def __init__(self) -> None:
        self._file: BinaryIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        if fcntl is not None:  # so that concurrent writers do not overwrite each other
            flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
            fcntl.fcntl(self._file, fcntl.F_SETFL, flags | os.O_APPEND)
        self._ends: dict[bytes, int] = {}
        self.reset_in_child()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork: read the file from its beginning, under a lock that no thread of the parent holds."""
        self._lock = threading.Lock()
        self._read_bytes = 0

    def add(self, nonce: str, ends_at: int) -> None:
        """Record that a sign-in was ended.

        Args:
            nonce: Its identifier, 32 hexadecimal digits.
            ends_at: When it would have expired, in seconds since 1970.
        """
        if fcntl is None:  # one process
            self._ends[bytes.fromhex(nonce)] = ends_at
            return
        os.write(self._file.fileno(), _RECORD.pack(bytes.fromhex(nonce), ends_at))

    def __contains__(self, nonce: str) -> bool:
        with self._lock:
            self._catch_up()
            return bytes.fromhex(nonce) in self._ends

    def _catch_up(self) -> None:
        """Read the records appended since the last time."""
        size = os.fstat(self._file.fileno()).st_size
        size -= size % _RECORD.size
        if size <= self._read_bytes:
            return
        appended = os.pread(self._file.fileno(), size - self._read_bytes, self._read_bytes)
        now = time.time()
        self._ends = {nonce: ends_at for nonce, ends_at in self._ends.items() if ends_at > now}
        self._ends.update(_RECORD.iter_unpack(appended))
        self._read_bytes = size
