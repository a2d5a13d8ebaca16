"""Services on the test's schema, for each asynchronous driver."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from locus_mysql.integrations.google_adk import AdkMemoryService, AdkSessionService

from ..conftest import Opened

MakeSessions = Callable[..., AdkSessionService]
MakeMemory = Callable[..., AdkMemoryService]


@pytest.fixture
def make_sessions(opened: Opened, driver: str) -> MakeSessions:
    """Return ``make_sessions(**options)``."""
    return partial(opened, AdkSessionService, driver=driver)


@pytest.fixture
def make_memory(opened: Opened, driver: str) -> MakeMemory:
    """Return ``make_memory(dims=…, embed=…, **options)``."""
    return partial(opened, AdkMemoryService, driver=driver)
