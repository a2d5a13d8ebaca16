"""Services on the test's schema, for each asynchronous driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from locus_mysql.families.transcripts import operations
from locus_mysql.integrations.google_adk import AdkMemoryService, AdkSessionService

from ...conftest import MakeConfig
from ...drivers_under_test import ASYNC_DRIVERS

MakeSessions = Callable[..., AdkSessionService]
MakeMemory = Callable[..., AdkMemoryService]


@pytest.fixture(params=ASYNC_DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make_sessions(
    make_config: MakeConfig, driver: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MakeSessions]:
    """Yield ``make_sessions(**options)``: another service on the test's schema, like that of another process."""
    monkeypatch.setattr(operations, "one_in", lambda one_in: False)
    made: list[AdkSessionService] = []

    def make(**options: Any) -> AdkSessionService:
        made.append(AdkSessionService(make_config(driver=driver, **options)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
async def make_memory(make_config: MakeConfig, driver: str) -> AsyncIterator[MakeMemory]:
    """Yield ``make_memory(dims=…, embed=…, **options)``."""
    made: list[AdkMemoryService] = []

    def make(*, dims: int | None = None, embed: Any = None, limit: int = 10, **options: Any) -> AdkMemoryService:
        config = make_config(driver=driver, **options)
        made.append(AdkMemoryService(config, dims=dims, embed=embed, limit=limit))
        return made[-1]

    yield make
    for one in made:
        await one.close()
