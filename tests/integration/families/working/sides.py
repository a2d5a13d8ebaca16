"""Both sides of a storage, called alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from locus_mysql.families.working.calls import Call, Reply
from locus_mysql.families.working.storages.interface import Storage

Execute: TypeAlias = Callable[[Storage, Call], Reply]


def blocking(storage: Storage, call: Call) -> Reply:
    return storage.execute_blocking(call)


def awaited(storage: Storage, call: Call) -> Reply:
    """In an event loop of its own, as ``agent.run_sync`` makes one for each call."""

    async def run() -> Reply:
        try:
            return await storage.execute(call)
        finally:
            await storage.aclose()

    return asyncio.run(run())


SIDES: list[Any] = [blocking, awaited]
