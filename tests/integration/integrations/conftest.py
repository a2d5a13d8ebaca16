"""Stores of frameworks on the test's schema, closed after the test."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql import MySQLConfig

from ..conftest import EVERY_ASYNC, EVERY_SYNC, MakeConfig

Opened: TypeAlias = Callable[..., Any]


@pytest.fixture(params=EVERY_ASYNC)
def driver(request: pytest.FixtureRequest) -> str:
    """Each driver's asynchronous side; in short runs one of them, chosen by `rotated`."""
    return str(request.param).rpartition("-")[0]


@pytest.fixture(params=EVERY_SYNC)
def sync_driver(request: pytest.FixtureRequest) -> str:
    """Each driver's blocking side; in short runs one of them, chosen by `rotated`."""
    return str(request.param).rpartition("-")[0]


@pytest.fixture
async def opened(make_config: MakeConfig) -> AsyncIterator[Opened]:
    """Yield ``opened(kind, *names, **options)``: another store, like that of another process.

    Options that are none of the configuration are the store's own.
    round trips.
    """
    stores: list[Any] = []

    def open_one(kind: Callable[..., Any], *names: Any, **options: Any) -> Any:
        own = {name: options.pop(name) for name in [*options] if name not in MySQLConfig.model_fields}
        stores.append(kind(*names, make_config(**options), **own))
        return stores[-1]

    yield open_one
    for store in stores:
        closing = store.close()
        if inspect.isawaitable(closing):
            await closing
