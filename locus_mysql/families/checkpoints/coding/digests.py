"""Identifies the text of a log by length and digest, and decides whether it begins with another one. No I/O.

A growing conversation is hashed incrementally: if its previous text is in memory, a save hashes only the added text and
compares the rest once.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....records.log_digests import HashedLog, Log
from .codec import EncodedState

_NO_LOG = HashedLog(Log("", 0, b"", 0))

#: The logs of one state by name; empty logs are not distinguished.
HashedLogs = Mapping[str, HashedLog]

#: Approximate memory of a hashed log, without its text.
_OVERHEAD_BYTES = 2_000


def hash_logs(state: EncodedState, before: HashedLogs) -> HashedLogs:
    """Compute the digests of a state's logs.

    Args:
        state: The state.
        before: Those of a state that this one may continue; for speed only.
    """
    hashed = {}
    for log in state.logs:
        if not log.text:
            hashed[log.name] = _NO_LOG
            continue
        earlier = before.get(log.name)
        same = earlier is not None and earlier.log.text == log.text
        hashed[log.name] = earlier if earlier is not None and same else HashedLog(log, earlier)
    return hashed


def size_bytes(logs: HashedLogs) -> int:
    """Approximate memory of hashed logs."""
    size = 0
    for hashed in logs.values():
        if hashed.log.text:
            size += len(hashed.log.text) + _OVERHEAD_BYTES
    return size
