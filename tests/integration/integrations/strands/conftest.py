"""Storages, repositories and memory stores on the test's schema, for each driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from locus_mysql.families.transcripts import operations
from locus_mysql.integrations.strands import StrandsMemoryStore, StrandsSessionRepository, StrandsStorage

from ...conftest import MakeConfig
from ...drivers_under_test import ASYNC_DRIVERS, SYNC_DRIVERS

MakeStorage = Callable[..., StrandsStorage]
MakeRepository = Callable[..., StrandsSessionRepository]
MakeMemory = Callable[..., StrandsMemoryStore]


@pytest.fixture(params=ASYNC_DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=SYNC_DRIVERS)
def sync_driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make_storage(make_config: MakeConfig, driver: str) -> AsyncIterator[MakeStorage]:
    """Yield ``make_storage(**options)``: another storage on the test's schema, like that of another process."""
    made: list[StrandsStorage] = []

    def make(*, search_strategy: Any = None, **options: Any) -> StrandsStorage:
        made.append(StrandsStorage(make_config(driver=driver, **options), search_strategy=search_strategy))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
def make_repository(
    make_config: MakeConfig, sync_driver: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeRepository]:
    """Yield ``make_repository(**options)``: another repository on the test's schema."""
    monkeypatch.setattr(operations, "one_in", lambda one_in: False)
    made: list[StrandsSessionRepository] = []

    def make(**options: Any) -> StrandsSessionRepository:
        made.append(StrandsSessionRepository(make_config(driver=sync_driver, **options)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
async def make_memory(make_config: MakeConfig, driver: str) -> AsyncIterator[MakeMemory]:
    """Yield ``make_memory(name=…, **arguments)``."""
    made: list[StrandsMemoryStore] = []

    def make(name: str = "facts", *, tenant: str = "default", **arguments: Any) -> StrandsMemoryStore:
        made.append(StrandsMemoryStore(make_config(driver=driver, tenant=tenant), name=name, **arguments))
        return made[-1]

    yield make
    for one in made:
        await one.close()
