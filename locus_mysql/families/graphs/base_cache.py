"""Cache of the threads that a process serves, so that a save does not have to read before it writes.

The cache is only a hint: the server refuses a save that builds on a cached checkpoint if the thread's epoch changed
(something was removed), or if the checkpoint's row with its token is missing (the server lost its newest commits). A
load compares the cached parts with the checkpoint's own list of parts and their checksums.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from ...runtime.lru_cache import LRUCache
from .chains import Stored
from .records import Base, LabelledValue
from .statements.tables import LAG_S
from .values import Body

#: Memory for the structure of recent checkpoints, besides the bytes of their values.
_MARKS_BYTES = 8_388_608

#: Seconds after an exclusive lock by a save of this process during which further saves only share the thread's lock.
#: This predicts the server's decision, which saves a round trip.
_SHARED_LOCK_S = LAG_S - 5

#: Approximate memory of each of these.
_MARK_BYTES, _BASE_BYTES, _VALUE_BYTES, _BODY_BYTES = 300, 600, 800, 300

Key = tuple[str, str]


class BaseCache:
    """Cache of the newest checkpoints that this process saved or loaded, by namespace, and of their threads' epochs.

    Args:
        cache_bytes: Memory for the bytes of their values.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._epochs: LRUCache[bytes] = LRUCache(_MARKS_BYTES // 4)
        self._locked_at: LRUCache[float] = LRUCache(_MARKS_BYTES // 4)
        self._bases: LRUCache[Base] = LRUCache(_MARKS_BYTES)
        self._bodies: LRUCache[Mapping[str, Body]] = LRUCache(cache_bytes)

    def epoch(self, key: Key) -> bytes | None:
        """Return the epoch of a thread, if it is known."""
        return self._epochs.get(key)

    def may_share(self, key: Key) -> bool:
        """Return whether a save of this process locked the thread so recently that others may only share its lock."""
        at = self._locked_at.get(key)
        return at is not None and time.monotonic() - at < _SHARED_LOCK_S

    def locked(self, key: Key, begun: float) -> None:
        """Record a save that locked the thread, and the monotonic time at which it began."""
        self._locked_at.put(key, begun, _MARK_BYTES)

    def base(self, key: Key, ns_key: bytes, checkpoint_key: bytes | None = None) -> Base | None:
        """Return the cached checkpoint of a namespace, if it is the requested one."""
        base = self._bases.get((key, ns_key))
        if base is None or (checkpoint_key is not None and base.checkpoint_key != checkpoint_key):
            return None
        if base.epoch != self.epoch(key):
            return None
        return replace(base, bodies=self.bodies(key, ns_key, base.values))

    def bodies(self, key: Key, ns_key: bytes, values: Mapping[str, LabelledValue]) -> Mapping[str, Body]:
        """Return the cached bodies of these values."""
        cached = self._bodies.get((key, ns_key))
        if not cached:
            return {}
        bodies = {}
        for name, (_, value) in values.items():
            if isinstance(value, Stored) and name in cached and cached[name].digest == value.digest:
                bodies[name] = cached[name]
        return bodies

    def remember(self, key: Key, ns_key: bytes, base: Base) -> None:
        """Cache a checkpoint that was saved or loaded, in place of the previous one of its namespace."""
        self._epochs.put(key, base.epoch, _MARK_BYTES)
        entry = replace(base, bodies={})
        self._bases.put((key, ns_key), entry, _BASE_BYTES + _VALUE_BYTES * len(base.values))
        size_bytes = sum(body.length + _BODY_BYTES for body in base.bodies.values())
        self._bodies.put((key, ns_key), base.bodies, size_bytes)

    def forget(self, key: Key) -> None:
        """Drop a thread: without its epoch, its other entries are not used."""
        self._epochs.put(key, b"", _MARK_BYTES)
