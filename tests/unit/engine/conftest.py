"""Fixtures of the engine's tests."""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass
class Clock:
    """A clock in seconds that tests advance."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()
