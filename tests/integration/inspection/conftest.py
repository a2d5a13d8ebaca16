"""An inspector of the test's schema."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql import CheckpointStore
from locus_mysql.inspection import Inspector

from ..conftest import MakeConfig

RunSQL: TypeAlias = Callable[..., tuple[Any, ...]]


@pytest.fixture
async def store(make_config: MakeConfig) -> AsyncIterator[CheckpointStore]:
    """A store of plain dicts."""
    async with CheckpointStore(make_config()) as made:
        yield made


@pytest.fixture
async def inspector(make_config: MakeConfig) -> AsyncIterator[Inspector]:
    """Of the same database, with connections of its own."""
    async with Inspector(make_config()) as made:
        yield made


@pytest.fixture
def sql(run_sql: RunSQL, database: str) -> RunSQL:
    """Runs a statement as the administrator; ``{db}`` stands for the test's schema."""

    def run(text: str, *params: Any) -> tuple[Any, ...]:
        return run_sql(text.replace("{db}", database), *params)

    return run
