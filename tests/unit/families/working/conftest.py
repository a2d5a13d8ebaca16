"""Sessions of both classes on a storage whose clock the test advances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.working import (
    InMemoryStorage,
    SyncWorkingMemory,
    WorkingMemory,
)

from ....either_side import AnyStore as AnyMemory


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def move(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


@pytest.fixture(params=[WorkingMemory, SyncWorkingMemory])
def open_memory(request: pytest.FixtureRequest, storage: InMemoryStorage) -> Callable[..., AnyMemory]:
    def open_one(session_id: str = "session", **options: Any) -> AnyMemory:
        return AnyMemory(request.param(session_id, storage, **options))

    return open_one


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def storage(clock: Clock) -> InMemoryStorage:
    return InMemoryStorage(clock=clock)


@pytest.fixture
def memory(open_memory: Callable[..., AnyMemory]) -> AnyMemory:
    return open_memory()
