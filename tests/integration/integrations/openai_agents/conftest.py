"""Sessions on each asynchronous driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from locus_mysql.families.transcripts import operations
from locus_mysql.integrations.openai_agents import OpenAIBranchingSession

from ...conftest import MakeConfig
from ...drivers_under_test import ASYNC_DRIVERS

MakeBranching = Callable[..., OpenAIBranchingSession]


@pytest.fixture(params=ASYNC_DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make_branching(
    make_config: MakeConfig, driver: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MakeBranching]:
    """Yield ``make_branching(**options)``: another session with branches, like that of another process."""
    monkeypatch.setattr(operations, "one_in", lambda one_in: False)
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    made: list[OpenAIBranchingSession] = []

    def make(session_id: str = "customer-7", **options: Any) -> OpenAIBranchingSession:
        made.append(OpenAIBranchingSession(session_id, make_config(driver=driver, **options)))
        return made[-1]

    yield make
    for one in made:
        await one.close()
