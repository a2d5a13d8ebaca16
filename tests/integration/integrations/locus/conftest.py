"""Checkpointers on the test's schema."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pymysql
import pytest

from locus_mysql import MySQLCheckpointer

from ...conftest import MakeConfig
from ...soundness import assert_sound

RunSQL = Callable[..., Any]


@pytest.fixture
def make_checkpointer(make_config: MakeConfig) -> Callable[..., MySQLCheckpointer]:
    """Return ``make_checkpointer(driver=…, **options)``, with options of the checkpointer and of its configuration."""
    own = set(inspect.signature(MySQLCheckpointer).parameters)

    def make(**options: Any) -> MySQLCheckpointer:
        config = make_config(**{name: value for name, value in options.items() if name not in own})
        return MySQLCheckpointer(config, **{name: value for name, value in options.items() if name in own})

    return make


@pytest.fixture
async def checkpointer(make_checkpointer: Callable[..., MySQLCheckpointer]) -> AsyncIterator[MySQLCheckpointer]:
    async with make_checkpointer() as one:
        yield one


@pytest.fixture
def sql(sql: RunSQL, raw: pymysql.Connection[Any]) -> Iterator[RunSQL]:
    """Yield a function that runs statements in the test's schema; check afterwards that its tables are sound."""
    yield sql
    if sql("SHOW TABLES LIKE 'locus\\_checkpoints'"):
        assert_sound(raw)
