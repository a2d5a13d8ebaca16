"""Imports of client libraries, by one thread at a time: `imported_once`.

The modules of these libraries import each other in circles. If two threads enter such a circle at different modules, as
the asynchronous and the blocking side of Connector/Python do, each waits for the other's module. Python then lets one
of them use an incomplete module, so that its first connection fails with an ImportError.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_lock = threading.RLock()


def imported_once(make: Callable[[], T]) -> Callable[[], T]:
    """Keep what a function returns, which imports a library. No two threads run such functions at the same time."""
    made: list[T] = []

    def get() -> T:
        if not made:
            with _lock:
                if not made:
                    made.append(make())
        return made[0]

    return get


if hasattr(os, "register_at_fork"):
    # A child that is forked during an import would wait for it forever.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
