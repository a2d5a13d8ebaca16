"""Stores of Pydantic AI on every asynchronous driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql.families.transcripts import operations
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore

from ...conftest import MakeConfig
from ...drivers_under_test import ASYNC_DRIVERS

Make: TypeAlias = Callable[..., PydanticConversationStore]


@pytest.fixture(params=ASYNC_DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make_store(make_config: MakeConfig, driver: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    """Yield ``make_store(**options)``: another store on the test's schema, like that of another process."""
    monkeypatch.setattr(operations, "one_in", lambda one_in: False)
    made: list[PydanticConversationStore] = []

    def make(**options: Any) -> PydanticConversationStore:
        made.append(PydanticConversationStore(make_config(driver=driver, **options)))
        return made[-1]

    yield make
    for one in made:
        await one.close()
