"""`FallbackClient`: calls a storage with a fallback, blocking or awaited."""

from __future__ import annotations

import asyncio
from typing import Any

from locus_mysql.families.working import calls
from locus_mysql.working import FallbackStorage

from .frail import HERE, Frail, call

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
