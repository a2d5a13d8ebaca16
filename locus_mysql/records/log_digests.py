"""Digests of a list's JSON text and of its prefixes, which identify a list that grew. No I/O.

A growing conversation is hashed incrementally: given the previous text, a save compares it once and hashes only the new
part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple


class Log(NamedTuple):
    """One top-level list: its items' JSON text without the brackets."""

    name: str
    cut: int
    text: bytes
    item_count: int


_DIGEST_BYTES = 16

#: Number of prefix digests kept with a text: a state's bases are among the last few; others are hashed again.
_PREFIXES_KEPT = 32


class Mark(NamedTuple):
    """The description of a log's text that is kept in memory."""

    length: int
    item_count: int
    digest: bytes


EMPTY = Mark(0, 0, b"")


class _Hashed(NamedTuple):
    """Digests of a text: a hasher of its first bytes, the number of these, and digests of prefixes by length."""

    hasher: Any
    done_bytes: int
    prefixes: Mapping[int, bytes]


_NOTHING_HASHED = _Hashed(hashlib.sha256(usedforsecurity=False), 0, {})


class HashedLog:
    """A log with the digests of its text. Each byte is hashed once if shorter prefixes are requested first.

    Safe to share between threads: the digests are replaced, never changed.

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
        """Return the mark of the text: its length, number of items and digest."""
        length = len(self.log.text)
        return Mark(length, self.log.item_count, self._digest(length)) if length else EMPTY

    def begins_with(self, mark: Mark) -> bool:
        """Return whether the text begins with the text of a mark, or equals it."""
        if not mark.length:
            return True
        return mark.length <= len(self.log.text) and self._digest(mark.length) == mark.digest

    def _digest(self, length: int) -> bytes:
        """Return the digest of the text's first bytes."""
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
