"""What a log's text is told by, length and digest, and whether it begins with another. No I/O.

A conversation's text is hashed once while it grows: with its last text at hand, a save pays for what is new, and for
one comparison of memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from .codec import EncodedState, Log

_DIGEST_BYTES = 16

#: Digests of prefixes kept with a text: a state's bases are among the last few, or found again by hashing.
_PREFIXES_KEPT = 32


class Mark(NamedTuple):
    """All that is remembered of a log's text."""

    length: int
    item_count: int
    digest: bytes


EMPTY = Mark(0, 0, b"")


class _Hashed(NamedTuple):
    """What is known of a text: a hasher of its first bytes, how many these are, and digests of prefixes by length."""

    hasher: Any
    done_bytes: int
    prefixes: Mapping[int, bytes]


_NOTHING_HASHED = _Hashed(hashlib.sha256(usedforsecurity=False), 0, {})


class HashedLog:
    """A log with the digests of its text, each byte hashed once if shorter prefixes are asked about first.

    Safe to share between threads: what is known of the text is replaced, never changed.

    Args:
        log: The log.
        before: An earlier one; if this one begins with its text, that part is not hashed again.
    """

    def __init__(self, log: Log, before: HashedLog | None = None) -> None:
        self.log = log
        self._hashed = _NOTHING_HASHED
        if before is not None and before.log.text and log.text.startswith(before.log.text):
            kept = dict(list(before._hashed.prefixes.items())[-_PREFIXES_KEPT:])
            self._hashed = before._hashed._replace(prefixes=kept)

    @cached_property
    def mark(self) -> Mark:
        """What is remembered of the text."""
        length = len(self.log.text)
        return Mark(length, self.log.item_count, self._digest(length)) if length else EMPTY

    def begins_with(self, mark: Mark) -> bool:
        """Whether the text begins with that of a mark, or is the same."""
        if not mark.length:
            return True
        return mark.length <= len(self.log.text) and self._digest(mark.length) == mark.digest

    def _digest(self, length: int) -> bytes:
        """The digest of the text's first bytes."""
        hasher, done, prefixes = self._hashed
        digest = prefixes.get(length)
        if digest is None:
            from_start = length < done
            one = _NOTHING_HASHED.hasher.copy() if from_start else hasher.copy()
            one.update(memoryview(self.log.text)[0 if from_start else done : length])
            digest = one.digest()[:_DIGEST_BYTES]
            prefixes = {**prefixes, length: digest}
            self._hashed = _Hashed(hasher, done, prefixes) if from_start else _Hashed(one, length, prefixes)
        return digest


_NO_LOG = HashedLog(Log("", 0, b"", 0))

#: The logs of one state by name; of an empty one, it is not told which it is.
HashedLogs = Mapping[str, HashedLog]

#: What a hashed log takes in memory beside its text, roughly.
_OVERHEAD_BYTES = 2_000


def hash_logs(state: EncodedState, before: HashedLogs) -> HashedLogs:
    """A state's logs to be told by their digests.

    Args:
        state: The state.
        before: Those of a state that this one may go on from; for speed only.
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
    """Memory that hashed logs take, roughly."""
    return sum([len(hashed.log.text) + _OVERHEAD_BYTES for hashed in logs.values() if hashed.log.text])
