"""LangGraph savers of every driver and side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver

from ...conftest import ONE_OF_EACH, MakeConfig

OpenSaver: TypeAlias = Callable[..., Any]


@pytest.fixture
async def open_saver(make_config: MakeConfig) -> AsyncIterator[OpenSaver]:
    """Yield ``open_saver(side, **options)``: a saver in the test's schema, closed after the test."""
    opened: list[Any] = []

    def open_one(side: str = ONE_OF_EACH[0], serde: Any = None, **options: Any) -> Any:
        driver, _, way = side.rpartition("-")
        saver = (AsyncMySQLSaver if way == "async" else MySQLSaver)(make_config(driver=driver, **options), serde=serde)
        opened.append(saver)
        return saver

    yield open_one
    for saver in opened:
        closing = saver.close()
        if closing is not None:
            await closing
