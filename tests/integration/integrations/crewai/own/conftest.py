"""Stores of CrewAI on the test's schema, where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ...conftest import Opened

collect_ignore = [] if importlib.util.find_spec("crewai") else ["test_flows.py", "test_memory.py"]

Make = Callable[..., Any]


@pytest.fixture
def make_flows(opened: Opened, sync_driver: str) -> Make:
    """Return ``make_flows(**options)``."""
    from locus_mysql.integrations.crewai import CrewFlowPersistence

    return partial(opened, CrewFlowPersistence, driver=sync_driver)


@pytest.fixture
def make_memory(opened: Opened, sync_driver: str) -> Make:
    """Return ``make_memory(dims=…, **options)``."""
    from locus_mysql.integrations.crewai import CrewMemoryStorage

    return partial(opened, CrewMemoryStorage, driver=sync_driver, dims=3)


@pytest.fixture(autouse=True)
def memory_of_flows(make_memory: Make) -> Iterator[None]:
    """Let flows without a memory of their own keep it in MySQL."""
    from crewai.memory.storage.factory import set_memory_storage_factory

    set_memory_storage_factory(lambda spec: make_memory())
    yield
    set_memory_storage_factory(None)
