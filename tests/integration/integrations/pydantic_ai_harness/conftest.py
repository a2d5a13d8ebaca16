"""Stores of Pydantic AI Harness on every asynchronous driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql.families.transcripts import operations
from locus_mysql.integrations.pydantic_ai_harness import PydanticMemoryStore, PydanticStepStore, file_operations

from ...conftest import MakeConfig
from ...drivers_under_test import ASYNC_DRIVERS

MakeMemories: TypeAlias = Callable[..., PydanticMemoryStore]
MakeSteps: TypeAlias = Callable[..., PydanticStepStore]


@pytest.fixture(params=ASYNC_DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def no_random_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "one_in", lambda count: False)
    monkeypatch.setattr(file_operations, "one_in", lambda count: False)


@pytest.fixture
async def make_memories(make_config: MakeConfig, driver: str) -> AsyncIterator[MakeMemories]:
    """Yield ``make_memories(**options)``: another store on the test's schema, like that of another process."""
    made: list[PydanticMemoryStore] = []

    def make(**options: Any) -> PydanticMemoryStore:
        made.append(PydanticMemoryStore(make_config(driver=driver, **options)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
async def make_steps(make_config: MakeConfig, driver: str) -> AsyncIterator[MakeSteps]:
    """Yield ``make_steps(max_snapshots_per_run=…, **options)``, as `make_memories`."""
    made: list[PydanticStepStore] = []

    def make(*, max_snapshots_per_run: int | None = None, **options: Any) -> PydanticStepStore:
        config = make_config(driver=driver, **options)
        made.append(PydanticStepStore(config, max_snapshots_per_run=max_snapshots_per_run))
        return made[-1]

    yield make
    for one in made:
        await one.close()
