"""A storage that goes on while the one that it relies on is away: `FallbackStorage`."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from ....engine.at_fork import tell_at_fork
from ....engine.logs import WORKING, told
from ....errors import ConfigError, LocusMySQLError
from ....runtime.arguments import check_tenant
from ....runtime.generators import drive_awaited, drive_blocking
from ..calls import Address, Call, Reply
from .in_memory import InMemoryStorage
from .interface import Condition, MayDegrade, Storage
from .outages.breaker import Breaker
from .outages.mirror import Mirror
from .outages.serving import Serving
from .outages.session_state import Lines
from .outages.steps import Ask, Forget, Settings, Step, Steps
from .outages.turns import Turn
from .outages.workers import Workers

T = TypeVar("T")


class FallbackStorage:
    """Serves sessions from a primary storage, and from a fallback while the primary does not answer. See `Storage`.

    What is written meanwhile is remembered in this process, and written to the primary when it is back, before that
    serves the session again: each acknowledged write once, in order, but none over what somebody else wrote to the
    primary meanwhile; that is reported. A process that ends before the primary is back loses what it remembers.

    Args:
        primary: The storage that counts. Not a `FallbackStorage` itself.
        fallback: What serves while the primary is away: a storage, ``"memory"`` for this process's own memory, or None:
            calls raise `Unavailable`, at once while the primary is known to be away. It may be a `FallbackStorage`.
        timeout_s: The primary is given up on when it has not answered within so many seconds.
        first_retry_s: Seconds until a primary that is away is tried again; each further wait is twice as long.
        longest_retry_s: The longest wait.
        jitter: Each wait is up to this part of it shorter or longer.
        max_pending: Most writes of all sessions that wait for the primary. Further ones raise `CapacityExceeded`.
        max_pending_bytes: Most bytes of these.
        max_sessions: Of so many sessions it is known what of them is new; of others, what others wrote before the
            outage counts as newer than what this process writes during it.
        mirror_bytes: So many bytes of what passes through are kept for an outage; sessions used least recently go.
        threads: Most blocking calls to the primary at once.
        on_lost: Called with a session's address and texts that name what was not written, without values.

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
        self._breaker = Breaker(first_retry_s, longest_retry_s, jitter, time.monotonic)
        self._serving = self._begin()
        self._workers = Workers(threads)
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: what waits is the parent's to write; locks and threads are new."""
        self._breaker.begin_in_child()
        self._workers.begin_in_child()
        self._serving = self._begin()
        if self._in_memory:
            self.fallback = InMemoryStorage()

    def _begin(self) -> Serving:
        max_sessions, mirror_bytes = self._limits
        return Serving(self._settings, self._breaker, Mirror(mirror_bytes), Lines(max_sessions))

    @property
    def config(self) -> Any:
        """The primary's options, if it has any."""
        return getattr(self.primary, "config", None)

    @property
    def degraded(self) -> bool:
        """Whether the primary is away."""
        return self._breaker.open

    @property
    def pending(self) -> int:
        """How many writes of all sessions wait for the primary."""
        return self._serving.lines.entries

    def condition(self, address: Address) -> Condition:
        """How it is with a session now: of this process, as what waits is remembered here."""
        mine = self._serving.condition(address)
        if not (mine.degraded and isinstance(self.fallback, MayDegrade)):
            return mine
        degraded, pending, lost = self.fallback.condition(address)
        return Condition(mine.degraded or degraded, mine.pending + pending, mine.lost + lost)

    async def execute(self, call: Call) -> Reply:
        """See `Storage`."""
        return await self._run(self._serving.serve(call))

    def execute_blocking(self, call: Call) -> Reply:
        """See `Storage`."""
        return self._run_blocking(self._serving.serve(call))

    async def flush(self) -> int:
        """Try the primary now, and write all that waits to it; how many writes still wait."""
        return await self._run(self._serving.flush())

    def flush_blocking(self) -> int:
        """The same, blocking."""
        return self._run_blocking(self._serving.flush())

    async def sweep(self, limit: int = 1_000) -> int:
        """Remove sessions that have expired from the primary, if it is there; how many.

        Args:
            limit: At most this many.
        """
        self._serving.mirror.sweep()
        if self.fallback is not None:
            await self.fallback.sweep(limit)
        return 0 if self._breaker.open else await self.primary.sweep(limit)

    def sweep_blocking(self, limit: int = 1_000) -> int:
        """The same, blocking."""
        self._serving.mirror.sweep()
        if self.fallback is not None:
            self.fallback.sweep_blocking(limit)
        return 0 if self._breaker.open else self.primary.sweep_blocking(limit)

    async def forget_tenant(self, tenant: str) -> int:
        """See `Storage`. Forgets what waits, too, and what passed through this process; not what others remember.

        Raises:
            Unavailable: The primary is away. What waited is forgotten then; call it again when the primary is back.
        """
        return await self._run(self._serving.forget_tenant(check_tenant(tenant)))

    def forget_tenant_blocking(self, tenant: str) -> int:
        """The same, blocking."""
        return self._run_blocking(self._serving.forget_tenant(check_tenant(tenant)))

    async def aclose(self) -> None:
        """Try to write what waits, and close the connections of both storages."""
        error: LocusMySQLError | None = None
        if self.pending:
            try:
                await self.flush()
            except LocusMySQLError as raised:
                error = raised
        self._warn(error)
        await self.primary.aclose()
        if self.fallback is not None:
            await self.fallback.aclose()

    def close(self) -> None:
        """The same, blocking."""
        error: LocusMySQLError | None = None
        if self.pending:
            try:
                self.flush_blocking()
            except LocusMySQLError as raised:
                error = raised
        self._warn(error)
        self.primary.close()
        if self.fallback is not None:
            self.fallback.close()

    def _warn(self, error: LocusMySQLError | None) -> None:
        if self.pending:
            WORKING.warning(
                "%d writes still wait for the primary storage of working memory, and are lost when this process ends%s",
                self.pending,
                "" if error is None else f" ({told(error)})",
            )

    async def _run(self, steps: Steps[T]) -> T:
        return await drive_awaited(steps, self._do)

    async def _do(self, step: Step) -> Reply | int | None:
        match step:
            case Ask("primary", call, timeout_s):
                async with asyncio.timeout(timeout_s):
                    return await self.primary.execute(call)
            case Ask(_, call):
                return await self._standing_in.execute(call)
            case Forget(which, tenant):
                return await (self.primary if which == "primary" else self._standing_in).forget_tenant(tenant)
            case _:
                await _take(step.turn)
                return None

    def _run_blocking(self, steps: Steps[T]) -> T:
        return drive_blocking(steps, self._do_blocking)

    def _do_blocking(self, step: Step) -> Reply | int | None:
        match step:
            case Ask("primary", call, timeout_s):
                work = functools.partial(self.primary.execute_blocking, call)
                return work() if timeout_s is None else self._workers.run(work, timeout_s)
            case Ask(_, call):
                return self._standing_in.execute_blocking(call)
            case Forget(which, tenant):
                return (self.primary if which == "primary" else self._standing_in).forget_tenant_blocking(tenant)
            case _:
                _take_blocking(step.turn)
                return None

    @property
    def _standing_in(self) -> Storage:
        if self.fallback is None:
            raise NotImplementedError("there is no fallback")
        return self.fallback

    def __repr__(self) -> str:
        return f"FallbackStorage({self.primary!r}, {self.fallback!r})"


async def _take(turn: Turn) -> None:
    """Wait until the turn is taken."""
    loop = asyncio.get_running_loop()
    come: asyncio.Future[None] = loop.create_future()

    def wake() -> bool:
        try:
            loop.call_soon_threadsafe(_settle, come)
        except RuntimeError:  # the loop is closed
            return False
        return True

    if turn.take(wake):
        return
    try:
        await come
    except BaseException:
        turn.leave(wake)
        raise


def _settle(come: asyncio.Future[None]) -> None:
    if not come.done():
        come.set_result(None)


def _take_blocking(turn: Turn) -> None:
    """Wait until the turn is taken, blocking."""
    come = threading.Event()

    def wake() -> bool:
        come.set()
        return True

    if turn.take(wake):
        return
    try:
        come.wait()
    except BaseException:
        turn.leave(wake)
        raise


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
