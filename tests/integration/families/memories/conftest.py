"""Memory stores of both sides with one interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from locus_mysql import MemoryStore, SyncMemoryStore

from ...conftest import Opening

Make: TypeAlias = Callable[..., Any]


@pytest.fixture
def make_memories(opening: Opening, side: str) -> Make:
    """Return ``make_memories(dims=…, tenant=…)``: another store on the test's schema, like that of another process."""
    return partial(opening, side, (MemoryStore, SyncMemoryStore))


@pytest.fixture
def memories(make_memories: Make) -> Any:
    return make_memories(dims=3)
