"""Fixtures: a stage for each side, and checks of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from ..conftest import ONE_OF_EACH, MakeConfig
from ..soundness import assert_all_sound
from .stage import Stage


@pytest.fixture(params=ONE_OF_EACH)
def stage(request: pytest.FixtureRequest, make_config: MakeConfig, run_sql: Callable[..., Any]) -> Iterator[Stage]:
    """Yield a stage, and close it after the test."""
    with Stage(make_config, run_sql, request.param) as running:
        yield running


@pytest.fixture
def check_tables(raw: pymysql.Connection[Any]) -> Callable[[], None]:
    """Return ``check_tables()``, which checks the invariants of all tables."""
    return lambda: assert_all_sound(raw)
