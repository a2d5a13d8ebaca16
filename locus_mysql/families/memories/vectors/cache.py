"""Recently searched ranges of embeddings in memory, bounded by bytes: `VectorCache`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ....engine.at_fork import reset_at_fork
from ....errors import ConfigError
from .table import CodeTable

#: The embeddings of one range take at most this fraction of the cache: a quarter, 64 MB of 256.
EMBEDDINGS_SHARE = 4

#: Maximum number of ranges that the cache records as large.
_LARGE_REMEMBERED = 1_000


class RangeKey(NamedTuple):
    """The key of a range in the cache.

    Args:
        tenant: The tenant.
        path: The path of the namespace.
        exact: Whether the range is this namespace only, without those below.
    """

    tenant: str
    path: bytes
    exact: bool


class Write(NamedTuple):
    """A write to a namespace.

    Args:
        stamp: The stamp that the write gave to the namespace.
        token: The write's random token.
    """

    stamp: int
    token: bytes


#: The last known write to each namespace, by the namespace's path.
Writes: TypeAlias = Mapping[bytes, Write]


def check_cache_bytes(limit: object) -> int:
    """Check the size of a cache of embeddings.

    Raises:
        ConfigError: The size is not a whole number, or is below 0.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ConfigError(f"vector_cache_bytes must be a whole number of bytes, 0 or more, not {limit!r:.50}.")
    return limit


@dataclass(slots=True)
class CachedRange:
    """The codes of a range, as of the last known write to each of its namespaces. Hold the lock to use it.

    Args:
        table: The codes.
        writes: The last known writes.
    """

    table: CodeTable
    writes: dict[bytes, Write]
    lock: threading.Lock = field(default_factory=threading.Lock)


class VectorCache:
    """An LRU cache of ranges, bounded by bytes. Safe to share between threads.

    Args:
        limit_bytes: The bound.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.reset_in_child()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """Clear the cache and replace the lock: after a fork, old locks may be held for ever."""
        self._ranges: OrderedDict[RangeKey, CachedRange] = OrderedDict()
        self._large: OrderedDict[RangeKey, None] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: RangeKey) -> CachedRange | None:
        """Return a range; None if it is not in the cache."""
        with self._lock:
            found = self._ranges.get(key)
            if found is not None:
                self._ranges.move_to_end(key)
            return found

    def put(self, key: RangeKey, cached: CachedRange) -> None:
        """Add a range, and evict others; a range that is larger than the bound is evicted itself."""
        with self._lock:
            self._ranges[key] = cached
            self._ranges.move_to_end(key)
            self._evict()

    def evict(self) -> None:
        """Evict ranges after tables grew."""
        with self._lock:
            self._evict()

    def was_large(self, key: RangeKey) -> bool:
        """Check whether `mark_large` was called for a range lately."""
        with self._lock:
            return key in self._large

    def mark_large(self, key: RangeKey) -> None:
        """Remember that a range should be searched in memory if it is searched again."""
        with self._lock:
            self._large[key] = None
            self._large.move_to_end(key)
            while len(self._large) > _LARGE_REMEMBERED:
                self._large.popitem(last=False)

    def fits(self, count: int, dims: int) -> bool:
        """Check whether a number of codes fits into the cache."""
        return count * (dims + 400) <= self._limit_bytes

    def fits_embeddings(self, count: int, dims: int) -> bool:
        """Check whether a number of embeddings may be kept beside their codes, so that other ranges have room."""
        return count * 4 * dims <= self._limit_bytes // EMBEDDINGS_SHARE

    def _evict(self) -> None:
        while self._ranges and sum(cached.table.size_bytes for cached in self._ranges.values()) > self._limit_bytes:
            self._ranges.popitem(last=False)
