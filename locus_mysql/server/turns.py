"""`Turns` and `LargeWork`: decide which requests run at once, so that no tenant takes what others need."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from threading import Lock
from typing import Self

from anyio import CapacityLimiter

from ..drivers.interface import WATCH, ReadLimitReached
from .bodies import LARGE_BYTES
from .problems import try_later

#: Seconds for which large work waits before it begins, so that small requests that waited for the last one go first.
LET_OTHERS_S = 0.002


class Turns:
    """Limits the requests that are accepted, and the operations in worker threads: for all, and for each tenant.

    Each tenant may have half of both. Further requests are refused; further operations wait.

    Args:
        requests: The number of requests accepted at once.
        operations: The number of operations carried out at once, each with a thread and a database connection.
    """

    def __init__(self, requests: int, operations: int) -> None:
        self._requests = requests
        self._accepted: Counter[str] = Counter()
        self._operations = CapacityLimiter(operations)
        self._of_tenant: defaultdict[str, CapacityLimiter] = defaultdict(
            lambda: CapacityLimiter(max(1, operations // 2))
        )

    def accept(self, tenant: str, held: ExitStack) -> None:
        """Accept a request, until ``held`` is closed.

        Raises:
            Problem: Too many requests are in progress, of this tenant or in total.
        """
        if self._accepted[tenant] >= max(1, self._requests // 2):
            raise try_later("too_many_requests", "Too many of your requests are in progress.", status=429, seconds=1)
        if self._accepted.total() >= self._requests:
            raise try_later("busy", "Too many requests are in progress.", seconds=1)
        self._accepted[tenant] += 1
        held.callback(self._accepted.subtract, [tenant])

    async def begin(self, tenant: str, held: ExitStack) -> None:
        """Wait until another operation of a tenant may begin; it ends when ``held`` is closed."""
        for limiter in (self._of_tenant[tenant], self._operations):
            await limiter.acquire_on_behalf_of(held)
            held.callback(limiter.release_on_behalf_of, held)


class LargeWork:
    """The work of one request in a worker thread; of large work, one thread at a time uses the processor.

    Python's global lock lets one thread run, and a call that parses or encodes megabytes keeps it throughout. Several
    threads with such calls would make a small request wait for each of them. A thread that waits for the database lets
    the next one go on. It is the `CallWatch` of the request's calls.

    Args:
        lock: The lock that all requests share.
        most_bytes: The largest answer of the database.
    """

    def __init__(self, lock: Lock, most_bytes: int) -> None:
        self._lock = lock
        self._most_bytes = most_bytes
        self._received = 0
        self._is_large = self._has_lock = False

    def go_on(self, size: int) -> None:
        """Use the processor, for data of this size in bytes; waits for other large work if this is large."""
        self._is_large = self._is_large or size > LARGE_BYTES
        if self._is_large and not self._has_lock:
            self._has_lock = self._lock.acquire()
            time.sleep(LET_OTHERS_S)

    def begin(self) -> None:
        """Let others use the processor, while this thread waits for the database."""
        self._received = 0
        if self._has_lock:
            self._has_lock = False
            self._lock.release()

    def received(self, size: int) -> None:
        """Count a piece of the database's answer."""
        self._received += size
        if self._received > self._most_bytes:
            raise ReadLimitReached(self._most_bytes)

    def end(self) -> None:
        """Go on, with the whole answer."""
        self.go_on(self._received)

    def __enter__(self) -> Self:
        self._token = WATCH.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        WATCH.reset(self._token)
        self.begin()
