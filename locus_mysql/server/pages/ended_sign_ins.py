"""`EndedSignIns`: the sign-ins that users ended, shared by all workers of the service.

Any worker may receive a user's request, and a cookie that was signed out must not be valid in another worker. So each
worker appends to one file, and reads what the others have appended.
"""

from __future__ import annotations

import struct
import threading
import time
from pathlib import Path

#: A record of the file: nonce and end of a sign-in.
_RECORD = struct.Struct("<16sq")


class EndedSignIns:
    """The nonces of ended sign-ins, kept until the sign-ins would have expired.

    Args:
        path: The file; None in a single process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._ends: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._read_bytes = 0

    def add(self, nonce: str, ends_at: int) -> None:
        """Record that a sign-in was ended.

        Args:
            nonce: Its identifier, 32 hexadecimal digits.
            ends_at: When it would have expired, in seconds since 1970.
        """
        with self._lock:
            self._keep({bytes.fromhex(nonce): ends_at})
        if self._path is not None:
            with self._path.open("ab", buffering=0) as file:
                file.write(_RECORD.pack(bytes.fromhex(nonce), ends_at))

    def __contains__(self, nonce: str) -> bool:
        with self._lock:
            self._catch_up()
            return bytes.fromhex(nonce) in self._ends

    def _catch_up(self) -> None:
        """Read the records appended since the last time."""
        if self._path is None or not self._path.exists():
            return
        size = self._path.stat().st_size
        size -= size % _RECORD.size
        if size <= self._read_bytes:
            return
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            appended = file.read(size - self._read_bytes)
        self._keep(dict(_RECORD.iter_unpack(appended)))
        self._read_bytes = size

    def _keep(self, ended: dict[bytes, int]) -> None:
        now = time.time()
        self._ends = {nonce: ends_at for nonce, ends_at in (self._ends | ended).items() if ends_at > now}
