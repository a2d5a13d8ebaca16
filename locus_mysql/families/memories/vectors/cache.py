"""Codes of recently searched ranges, bounded by memory: `VectorCache`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TypeAlias

from ....engine.at_fork import tell_at_fork
from ....errors import ConfigError
from .table import CodeTable

#: The embeddings of a range take at most this part of the bound: 64 MB of 256.
EMBEDDINGS_SHARE = 4

#: Of so many ranges it is remembered that they are large.
_LARGE_REMEMBERED = 1_000

#: Tenant, path and whether only that namespace.
RangeKey: TypeAlias = tuple[str, bytes, bool]


def check_cache_bytes(limit: object) -> int:
    """Memory for what repeated searches compare.

    Raises:
        ConfigError: It is no whole number, or below 0.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ConfigError(f"vector_cache_bytes must be a whole number of bytes, 0 or more, not {limit!r:.50}.")
    return limit


@dataclass(slots=True)
class KnownRange:
    """A range as it was after the last known write to each of its namespaces. Used under its lock.

    Args:
        table: Its codes.
        writes: Stamp and token of that write, by the path of the namespace.
    """

    table: CodeTable
    writes: dict[bytes, tuple[int, bytes]]
    lock: threading.Lock = field(default_factory=threading.Lock)


class VectorCache:
    """Ranges by their keys; the least recently used goes when they take more than a bound. Safe among threads.

    Args:
        limit_bytes: The bound.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """Keep nothing, under a new lock: after a fork, the old one may be held for ever, and so may a range's."""
        self._ranges: OrderedDict[RangeKey, KnownRange] = OrderedDict()
        self._large: OrderedDict[RangeKey, None] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: RangeKey) -> KnownRange | None:
        """What is known of a range."""
        with self._lock:
            found = self._ranges.get(key)
            if found is not None:
                self._ranges.move_to_end(key)
            return found

    def put(self, key: RangeKey, known: KnownRange) -> None:
        """Remember a range; forget others, or itself if it is larger than the bound."""
        with self._lock:
            self._ranges[key] = known
            self._ranges.move_to_end(key)
            self._shrink()

    def drop(self, key: RangeKey) -> None:
        """Forget a range."""
        with self._lock:
            self._ranges.pop(key, None)

    def has_grown(self) -> None:
        """See to the bound after tables grew."""
        with self._lock:
            self._shrink()

    def was_large(self, key: RangeKey) -> bool:
        """Whether a range is among those that were last found to be large."""
        with self._lock:
            return key in self._large

    def found_large(self, key: RangeKey) -> None:
        """Remember that a range is better searched in memory, if it is searched again."""
        with self._lock:
            self._large[key] = None
            self._large.move_to_end(key)
            while len(self._large) > _LARGE_REMEMBERED:
                self._large.popitem(last=False)

    def fits(self, count: int, dims: int) -> bool:
        """Whether so many codes may be kept."""
        return count * (dims + 400) <= self._limit_bytes

    def fits_embeddings(self, count: int, dims: int) -> bool:
        """Whether so many embeddings may be kept beside their codes, so that other ranges have room."""
        return count * 4 * dims <= self._limit_bytes // EMBEDDINGS_SHARE

    def _shrink(self) -> None:
        while self._ranges and sum(known.table.size_bytes for known in self._ranges.values()) > self._limit_bytes:
            self._ranges.popitem(last=False)
