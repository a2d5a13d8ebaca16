"""What tests of the engine share."""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass
class Clock:
    """Seconds that go forward when told to."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()
