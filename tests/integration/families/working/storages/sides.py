"""One interface for calling both sides of a storage."""

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
    """Run a call in a new event loop, as ``agent.run_sync`` does."""

    async def run() -> Reply:
        try:
            return await storage.execute(call)
        finally:
            await storage.aclose()

    return asyncio.run(run())


SIDES: list[Any] = [blocking, awaited]
