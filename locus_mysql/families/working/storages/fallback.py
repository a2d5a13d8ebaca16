"""A storage that continues while its primary storage is unavailable: `FallbackStorage`."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Literal, TypeVar

from ....background_loop import in_thread
from ....engine.at_fork import reset_at_fork
from ....engine.logs import WORKING, loggable
from ....engine.operation import drive_awaited, drive_blocking
from ....errors import ConfigError, LocusMySQLError
from ..calls import Address
from .failover import Failover
from .in_memory import InMemoryStorage
from .interface import FairLock, MayDegrade, OutageStatus, Storage, TwoSided
from .queued import Mirror
from .replaying import Breaker, Settings, Step

T = TypeVar("T")


class FallbackStorage(TwoSided):
    """Serves sessions from a primary storage, and from a fallback while the primary does not answer. See `Storage`.

    Writes during an outage are queued in this process. When the primary answers again, they are written to it one by
    one, in order, before it serves the session: each acknowledged write once, increments as increments. Of two writes
    of a variable the newer one stays, by the clocks of the machines; a dropped write is reported. A process that ends
    before that loses its queued writes.

    Args:
        primary: The main storage. Not a `FallbackStorage` itself.
        fallback: The storage that serves during an outage of the primary: a storage, ``"memory"`` for this process's
            own memory, or None: calls raise `Unavailable`, at once while the primary is known to be unavailable. It may
            be a `FallbackStorage`.
        timeout_s: Seconds to wait for an answer of the primary.
        first_retry_s: Seconds until an unavailable primary is tried again; each further wait is twice as long.
        longest_retry_s: The longest wait.
        jitter: Each wait is up to this part of it shorter or longer.
        max_pending: Maximum number of queued writes of all sessions. Further writes raise `CapacityExceeded`.
        max_pending_bytes: Maximum bytes of these.
        max_sessions: The number of sessions whose content this process keeps for an outage.
        mirror_bytes: Bytes of session data from calls that are kept for an outage; the least recently used
            sessions are dropped.
        threads: Maximum number of concurrent blocking calls to the primary.
        on_lost: Called with a session's address and descriptions of the lost writes, without values.

    Raises:
        ConfigError: An option is wrong.
    """

    def __init__(
        self,
        primary: Storage,
        fallback: Storage | Literal["memory"] | None = "memory",
        *,
        timeout_s: float = 1.0,
        first_retry_s: float = 0.5,
        longest_retry_s: float = 30.0,
        jitter: float = 0.2,
        max_pending: int = 10_000,
        max_pending_bytes: int = 67_108_864,
        max_sessions: int = 10_000,
        mirror_bytes: int = 67_108_864,
        threads: int = 64,
        on_lost: Callable[[Address, tuple[str, ...]], None] | None = None,
    ) -> None:
        _check_storages(primary, fallback)
        _check_numbers(
            above_0={"timeout_s": timeout_s, "first_retry_s": first_retry_s, "longest_retry_s": longest_retry_s},
            whole={
                "max_pending": max_pending,
                "max_pending_bytes": max_pending_bytes,
                "max_sessions": max_sessions,
                "mirror_bytes": mirror_bytes,
                "threads": threads,
            },
        )
        if not 0 <= jitter < 1:
            raise ConfigError(f"jitter must be a number from 0 to below 1, not {jitter!r:.50}.")
        self.primary = primary
        self.fallback: Storage | None = InMemoryStorage() if fallback == "memory" else fallback
        self._in_memory = fallback == "memory"
        self._settings = Settings(timeout_s, max_pending, max_pending_bytes, fallback is not None, on_lost)
        self._limits = max_sessions, mirror_bytes
        self._retries = first_retry_s, longest_retry_s, jitter
        self._max_threads = threads
        super().__init__(self._begin(), None)
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork, replace locks and threads, and leave the queued writes to the parent."""
        self._both = self._begin()
        if self._in_memory:
            self.fallback = InMemoryStorage()

    def _begin(self) -> Failover:
        max_sessions, mirror_bytes = self._limits
        self._breaker = Breaker(*self._retries, time.monotonic)
        self._threads = threading.Semaphore(self._max_threads)
        self._failover = Failover(self._settings, self._breaker, Mirror(max_sessions, mirror_bytes), max_sessions)
        return self._failover

    @property
    def config(self) -> Any:
        """The primary's options, if it has any."""
        return getattr(self.primary, "config", None)

    @property
    def degraded(self) -> bool:
        """Return whether the primary is unavailable."""
        return self._breaker.open

    @property
    def pending(self) -> int:
        """The number of queued writes of all sessions."""
        return self._failover.replayer.entries

    def condition(self, address: Address) -> OutageStatus:
        """Return whether a session is degraded, and the writes that this process queued and lost."""
        mine = self._failover.status(address)
        if not (mine.degraded and isinstance(self.fallback, MayDegrade)):
            return mine
        degraded, pending, lost = self.fallback.condition(address)
        return OutageStatus(mine.degraded or degraded, mine.pending + pending, mine.lost + lost)

    async def flush(self) -> int:
        """Try the primary now and write all queued writes to it; returns the number of those still queued."""
        return await self._run(self._failover.replayer.flush())

    def flush_blocking(self) -> int:
        """The same, blocking."""
        return self._run_blocking(self._failover.replayer.flush())

    async def aclose(self) -> None:
        """Try to write the queued writes, and close the connections of both storages."""
        self._warn(await self._run(self._failover.replayer.flush_at_last()))
        await self.primary.aclose()
        if self.fallback is not None:
            await self.fallback.aclose()

    def close(self) -> None:
        """The same, blocking."""
        self._warn(self._run_blocking(self._failover.replayer.flush_at_last()))
        self.primary.close()
        if self.fallback is not None:
            self.fallback.close()

    def _warn(self, error: LocusMySQLError | None) -> None:
        if self.pending:
            WORKING.warning(
                "%d writes still wait for the primary storage of working memory, and are lost when this process ends%s",
                self.pending,
                "" if error is None else f" ({loggable(error)})",
            )

    def _run(self, steps: Generator[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return drive_awaited(steps, self._do)

    async def _do(self, step: Step) -> Any:
        if isinstance(step, FairLock):
            return await step.wait()
        method = getattr(self._storage(step.storage), step.method)
        async with asyncio.timeout(step.timeout_s):
            return await method(step.argument)

    def _run_blocking(self, steps: Generator[Any, Any, T]) -> T:
        return drive_blocking(steps, self._do_blocking)

    def _do_blocking(self, step: Step) -> Any:
        if isinstance(step, FairLock):
            return step.wait_blocking()
        method = functools.partial(getattr(self._storage(step.storage), f"{step.method}_blocking"), step.argument)
        return method() if step.timeout_s is None else self._within(step.timeout_s, method)

    def _within(self, timeout_s: float, method: Callable[[], T]) -> T:
        """Call the primary in another thread, as nothing can interrupt its blocking methods.

        Raises:
            TimeoutError: There was no answer, or no thread, in time. The call continues, and its result is ignored.
        """
        deadline = time.monotonic() + timeout_s
        if not self._threads.acquire(timeout=timeout_s):
            raise TimeoutError(f"All threads waited for the storage for {timeout_s:g} s.")
        threads = self._threads
        answer = in_thread(method, "locus-mysql fallback")
        answer.add_done_callback(lambda _: threads.release())
        try:
            return answer.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            if answer.done():  # the storage's own
                raise
            raise TimeoutError(f"The storage did not answer within {timeout_s:g} s.") from None

    def _storage(self, name: Literal["primary", "fallback"]) -> Storage:
        storage = self.primary if name == "primary" else self.fallback
        if storage is None:
            raise RuntimeError(
                "A call was sent to the fallback, and there is none: a defect of locus-mysql. Report it."
            )
        return storage

    def __repr__(self) -> str:
        return f"FallbackStorage({self.primary!r}, {self.fallback!r})"


def _check_storages(primary: object, fallback: object) -> None:
    if not isinstance(primary, Storage) or isinstance(primary, FallbackStorage):
        raise ConfigError(
            f"primary must be a storage, such as MySQLStorage(...), not {type(primary).__name__}. To have several "
            "fallbacks, give the fallback a fallback: FallbackStorage(first, FallbackStorage(second, 'memory'))."
        )
    if fallback is not None and fallback != "memory" and not isinstance(fallback, Storage):
        raise ConfigError(f"fallback must be a storage, 'memory' or None, not {fallback!r:.50}.")
    if fallback is primary:
        raise ConfigError("fallback must be another storage than primary.")


def _check_numbers(above_0: dict[str, float], whole: dict[str, int]) -> None:
    for name, value in above_0.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
            raise ConfigError(f"{name} must be a number of seconds above 0 and up to 86400, not {value!r:.50}.")
    for name, number in whole.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ConfigError(f"{name} must be a whole number of at least 1, not {number!r:.50}.")
