"""`Frail`, a storage that can be switched off, loses answers, and hangs; `FallbackClient` calls one with a fallback."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

from locus_mysql.errors import Unavailable
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.working import FallbackStorage


class Frail:
    """One process's view of an `InMemoryStorage` that several processes may share.

    Args:
        kept: The storage.
    """

    def __init__(self, kept: InMemoryStorage | None = None) -> None:
        self.kept = kept or InMemoryStorage()
        self.away = False
        #: How calls fail during an outage: before or after their execution.
        self.loses: Callable[[], bool] = lambda: False
        #: Whether it carries out a write without an answer.
        self.mute: Callable[[], bool] = lambda: False
        self.hangs = threading.Event()
        self.hanging = False
        self.asked: list[calls.Call] = []
        #: Set when an awaited call hangs.
        self.arrived = asyncio.Event()
        self.error: Callable[[], Exception] = lambda: Unavailable("It is away.")

    def execute_blocking(self, call: calls.Call) -> calls.Reply:
        self.asked.append(call)
        if self.hanging:
            assert self.hangs.wait(60)
        if self.away:
            if self.loses():
                try:
                    self.kept.execute_blocking(call)
                except Exception:
                    raise self.error() from None
            raise self.error()
        reply = self.kept.execute_blocking(call)
        if call.writes and self.mute():
            raise self.error()
        return reply

    async def execute(self, call: calls.Call) -> calls.Reply:
        if self.hanging:
            self.asked.append(call)
            self.arrived.set()
            await asyncio.sleep(60)
        return self.execute_blocking(call)

    def sweep_blocking(self, limit: int = 1_000) -> int:
        return self.kept.sweep_blocking(limit)

    async def sweep(self, limit: int = 1_000) -> int:
        return self.sweep_blocking(limit)

    def forget_tenant_blocking(self, tenant: str) -> int:
        if self.away:
            raise self.error()
        return self.kept.forget_tenant_blocking(tenant)

    async def forget_tenant(self, tenant: str) -> int:
        return self.forget_tenant_blocking(tenant)

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


HERE = calls.Address("t", "s")


def call(*commands: calls.Command[Any], address: calls.Address = HERE, **options: Any) -> calls.Call:
    return calls.Call("test", address, commands, **{"token": os.urandom(16), **options})


def variable(key: str, value: object, ttl_us: int | None = None) -> calls.Variable:
    text = str(value).encode()
    return calls.Variable(key, text, ttl_us)


def limits(**options: Any) -> calls.Limits:
    return calls.Limits(**options)


OTHER = calls.Address("t", "other")


DEADLINE_S = 60.0


class FallbackClient:
    """One side of a storage that probes its primary at each call."""

    def __init__(self, *, awaited: bool) -> None:
        self.awaited = awaited
        self.loop = asyncio.new_event_loop() if awaited else None
        self.primary = Frail()
        self.lost: list[tuple[calls.Address, tuple[str, ...]]] = []
        self.storage = self.make(self.primary)

    def make(self, primary: Any, fallback: Any = "memory", **options: Any) -> FallbackStorage:
        return FallbackStorage(
            primary,
            fallback,
            on_lost=lambda address, texts: self.lost.append((address, texts)),
            **{"timeout_s": DEADLINE_S, "first_retry_s": 1e-9, "longest_retry_s": 1e-9, **options},
        )

    def ask(self, *commands: calls.Command[Any], **options: Any) -> tuple[Any, ...]:
        asked = call(*commands, **options)
        reply: calls.Reply = (
            self.loop.run_until_complete(self.storage.execute(asked))
            if self.loop
            else self.storage.execute_blocking(asked)
        )
        return reply.results

    def do(self, command: calls.Command[Any], **options: Any) -> Any:
        return self.ask(command, **options)[0]

    def flush(self) -> int:
        return self.loop.run_until_complete(self.storage.flush()) if self.loop else self.storage.flush_blocking()

    def goes(self, *, loses: bool = False) -> None:
        """Begin an outage that the storage detects."""
        self.primary.away, self.primary.loses = True, lambda: loses

    def comes(self) -> None:
        self.primary.away = False

    def others(self, *commands: calls.Command[Any], address: calls.Address = HERE) -> tuple[Any, ...]:
        """Make a call of another process on the primary."""
        return self.primary.kept.execute_blocking(call(*commands, address=address)).results


def values(found: Any) -> dict[str, bytes]:
    return {key: one.value for key, one in found.items()}
