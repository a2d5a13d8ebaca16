"""Storages, repositories and memory stores on the test's schema, for each driver."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from locus_mysql.integrations.strands import StrandsMemoryStore, StrandsSessionRepository, StrandsStorage

from ..conftest import Opened

MakeStorage = Callable[..., StrandsStorage]
MakeRepository = Callable[..., StrandsSessionRepository]
MakeMemory = Callable[..., StrandsMemoryStore]


@pytest.fixture
def make_storage(opened: Opened, driver: str) -> MakeStorage:
    """Return ``make_storage(search_strategy=…, **options)``."""
    return partial(opened, StrandsStorage, driver=driver)


@pytest.fixture
def make_repository(opened: Opened, sync_driver: str) -> MakeRepository:
    """Return ``make_repository(**options)``."""
    return partial(opened, StrandsSessionRepository, driver=sync_driver)


@pytest.fixture
def make_memory(opened: Opened, driver: str) -> MakeMemory:
    """Return ``make_memory(name, **options)``."""

    def make(name: str = "facts", **options: Any) -> Any:
        return opened(StrandsMemoryStore, driver=driver, name=name, **options)

    return make
