"""What a process remembers of the threads it serves, so that a save need not read before it writes.

Only a hint: a save that goes on from a remembered checkpoint is refused by the server if the thread's epoch is another
(something was removed), or if the checkpoint's row is not there with its token (the server lost its newest commits). A
load compares what is remembered with the checkpoint's own list of parts and their checksums.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from ...dialect.graphs.threads import LAG_S
from ...runtime.recent import Recent
from .chains import Stored
from .records import Base, Held
from .values import Body

#: Memory for how recent checkpoints are stored, beside the bytes of their values.
_MARKS_BYTES = 8_388_608

#: A save shares its thread's lock until this many seconds after one of this process that locked it. It is a guess of
#: what the server will find, which saves a round trip.
_SHARES_S = LAG_S - 5

#: What these take each, roughly.
_MARK_BYTES, _BASE_BYTES, _VALUE_BYTES, _BODY_BYTES = 300, 600, 800, 300

Key = tuple[str, str]


class VersionMemory:
    """The newest checkpoints that this process saved or loaded, by namespace, and the epochs of their threads.

    Args:
        cache_bytes: Memory for the bytes of their values.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._epochs: Recent[bytes] = Recent(_MARKS_BYTES // 4)
        self._locked_at: Recent[float] = Recent(_MARKS_BYTES // 4)
        self._bases: Recent[Base] = Recent(_MARKS_BYTES)
        self._bodies: Recent[Mapping[str, Body]] = Recent(cache_bytes)

    def epoch(self, key: Key) -> bytes | None:
        """The epoch of a thread, as far as is known."""
        return self._epochs.get(key)

    def may_share(self, key: Key) -> bool:
        """Whether a save of this process locked the thread so recently that another one may only share its lock."""
        at = self._locked_at.get(key)
        return at is not None and time.monotonic() - at < _SHARES_S

    def locked(self, key: Key, begun: float) -> None:
        """Take note of a save that locked the thread, and of the monotonic time at which it began."""
        self._locked_at.put(key, begun, _MARK_BYTES)

    def base(self, key: Key, ns_key: bytes, version_key: bytes | None = None) -> Base | None:
        """The checkpoint last remembered of a namespace, if it is the one asked for."""
        base = self._bases.get((key, ns_key))
        if base is None or (version_key is not None and base.version_key != version_key):
            return None
        if base.epoch != self.epoch(key):
            return None
        return replace(base, bodies=self.bodies(key, ns_key, base.values))

    def bodies(self, key: Key, ns_key: bytes, values: Mapping[str, Held]) -> Mapping[str, Body]:
        """The bodies at hand of these values."""
        kept = self._bodies.get((key, ns_key))
        if not kept:
            return {}
        found = {}
        for name, (_, value) in values.items():
            if isinstance(value, Stored) and name in kept and kept[name].digest == value.digest:
                found[name] = kept[name]
        return found

    def remember(self, key: Key, ns_key: bytes, base: Base) -> None:
        """Remember a checkpoint that was saved or loaded, in place of the one before of its namespace."""
        self._epochs.put(key, base.epoch, _MARK_BYTES)
        mark = replace(base, bodies={})
        self._bases.put((key, ns_key), mark, _BASE_BYTES + _VALUE_BYTES * len(base.values))
        size_bytes = sum(body.length + _BODY_BYTES for body in base.bodies.values())
        self._bodies.put((key, ns_key), base.bodies, size_bytes)

    def forget(self, key: Key) -> None:
        """Forget a thread: without its epoch, nothing else of it is believed."""
        self._epochs.put(key, b"", _MARK_BYTES)
