"""Memory stores of both sides with one interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql import MemoryStore, SyncMemoryStore

from ....either_side import AnyStore as AnyMemories
from ...conftest import MakeConfig
from ..checkpoints.conftest import EACH_WAY, SIDES, raw, side_name, sql  # noqa: F401 - fixtures

Make: TypeAlias = Callable[..., Any]

__all__ = ["EACH_WAY", "SIDES", "Make", "side_name"]


@pytest.fixture(params=SIDES, ids=side_name)
def side(request: pytest.FixtureRequest) -> tuple[str, bool]:
    """Override with ``parametrize("side", EACH_WAY, ids=side_name)`` for each way of calling a driver."""
    return request.param


@pytest.fixture
async def make_memories(make_config: MakeConfig, side: tuple[str, bool]) -> AsyncIterator[Make]:
    """Yield ``make_memories(dims=…, tenant=…)``: another store on the test's schema, like that of another process."""
    made: list[AnyMemories] = []
    own = {"dims", "embed", "fields", "metric", "model", "vector_cache_bytes"}

    def make(**options: Any) -> AnyMemories:
        config = make_config(driver=side[0], **{name: value for name, value in options.items() if name not in own})
        chosen = {name: value for name, value in options.items() if name in own}
        made.append(AnyMemories((MemoryStore if side[1] else SyncMemoryStore)(config, **chosen)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
def memories(make_memories: Make) -> Any:
    return make_memories(dims=3)
