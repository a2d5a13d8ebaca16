"""A client of a storage with a fallback, for each side."""

from __future__ import annotations

from typing import Any

import pytest

from .frail import FallbackClient


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def client(request: pytest.FixtureRequest) -> Any:
    one = FallbackClient(awaited=request.param)
    yield one
    if one.loop:
        one.loop.close()
