"""`full` and `going_together`: calls wait for a connection, so that their writes share a packet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import ref

from locus_mysql.engine.connection_slots import Slot
from locus_mysql.engine.execution import SyncEngine
from locus_mysql.engine.pool import Pool

#: Longest wait for the calls, in seconds: one of them may need no connection.
PATIENCE_S = 1.0


@contextmanager
def full(pool: Pool) -> Iterator[Callable[[], None]]:
    """Keep all slots of a pool that no call uses; yields a function that frees one of them.

    The pool has an idle connection, which goes with that slot.
    """
    held = [Slot() for _ in range(pool._config.pool_size)]
    with pool._lock:
        assert pool._idle
        assert not pool._slots.taken
        pool._slots.taken.update(ref(slot, pool._slots.taken.discard) for slot in held)
    try:
        yield lambda: pool._leave(held[0])
    finally:
        for slot in held:
            pool._leave(slot)


@contextmanager
def going_together(engine: SyncEngine, calls: int) -> Iterator[None]:
    """Keep all slots of a blocking engine's pool until a number of calls wait; then give them one slot.

    Args:
        engine: The engine. No call of it is in progress.
        calls: The number of calls that the block makes at once.
    """
    pool = engine._pool

    def release() -> None:
        end = time.monotonic() + PATIENCE_S
        while pool.state().waiting < calls and time.monotonic() < end:
            time.sleep(0.001)
        free()

    with full(pool) as free:
        thread = threading.Thread(target=release)
        thread.start()
        try:
            yield
        finally:
            thread.join()
