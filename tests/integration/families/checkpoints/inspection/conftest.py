"""Fixtures of the inspector's tests on threads of checkpoints: a store, an inspector and statements."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql import CheckpointStore
from locus_mysql.inspection import Inspector

from ....conftest import MakeConfig

RunSQL: TypeAlias = Callable[..., tuple[Any, ...]]


@pytest.fixture(autouse=True)
def sound_tables() -> None:
    """Skip the check of the tables: some of these tests damage rows."""


@pytest.fixture
async def store(make_config: MakeConfig) -> AsyncIterator[CheckpointStore]:
    """Yield a store whose states are dicts."""
    async with CheckpointStore(make_config()) as made:
        yield made


@pytest.fixture
async def inspector(make_config: MakeConfig) -> AsyncIterator[Inspector]:
    """Yield an inspector of the same schema, with its own connections."""
    async with Inspector(make_config()) as made:
        yield made
