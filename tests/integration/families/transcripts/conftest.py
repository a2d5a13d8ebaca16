"""Transcript stores of both sides with one interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore

from ....either_side import AnyStore
from ...conftest import EACH_WAY, MakeConfig

Make: TypeAlias = Callable[..., Any]


@pytest.fixture(params=EACH_WAY)
def side(request: pytest.FixtureRequest) -> str:
    """Each driver and side."""
    return str(request.param)


@pytest.fixture
async def make_store(make_config: MakeConfig, side: str) -> AsyncIterator[Make]:
    """Yield ``make_store(**options)``: another store on the test's schema, like that of another process."""
    made: list[AnyStore] = []

    def make(**options: Any) -> AnyStore:
        driver, _, way = side.rpartition("-")
        config = make_config(driver=driver, **options)
        made.append(AnyStore((TranscriptStore if way == "async" else SyncTranscriptStore)(config)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
def store(make_store: Make) -> Any:
    return make_store()
