"""Working memories of both sides with one face."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql.working import SyncWorkingMemory, WorkingMemory
from locus_mysql.working.storages.mysql import MySQLStorage

from ..checkpoints.conftest import SIDES, side_name
from ..conftest import MakeConfig

Open: TypeAlias = Callable[..., Any]


class AnyMemory:
    """A working memory of either side: every method is awaited here."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.memory, name)

        async def call(*args: Any, **options: Any) -> Any:
            outcome = method(*args, **options)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return call


@pytest.fixture(params=SIDES, ids=side_name)
def side(request: pytest.FixtureRequest) -> tuple[str, bool]:
    """Override with ``parametrize("side", ALL_SIDES, ids=side_name)`` for every driver."""
    return request.param


@pytest.fixture
async def open_memory(make_config: MakeConfig, side: tuple[str, bool]) -> AsyncIterator[Open]:
    """``open_memory("session", tenant=…)``: a working memory on the test's schema, as another process has it."""
    storages: list[MySQLStorage] = []

    def open_one(session_id: str = "session", *, config: Any = None, **options: Any) -> AnyMemory:
        storages.append(MySQLStorage(config or make_config(driver=side[0])))
        return AnyMemory((WorkingMemory if side[1] else SyncWorkingMemory)(session_id, storages[-1], **options))

    yield open_one
    for storage in storages:
        await storage.aclose()
