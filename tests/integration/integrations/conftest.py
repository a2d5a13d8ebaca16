"""Stores of frameworks on the test's schema, closed after the test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from ..conftest import EVERY_ASYNC, EVERY_SYNC, Opening

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
def opened(opening: Opening) -> Opened:
    """Return ``opened(kind, *names, driver=…, **options)``: another store, like that of another process."""

    def open_one(kind: Callable[..., Any], *names: Any, driver: str = "mysql-connector", **options: Any) -> Any:
        return opening(f"{driver}-async", (partial(kind, *names), None), **options).store

    return open_one
