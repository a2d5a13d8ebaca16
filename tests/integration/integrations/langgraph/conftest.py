"""LangGraph savers of every driver and side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver

from ...conftest import ONE_OF_EACH, Opening

OpenSaver: TypeAlias = Callable[..., Any]


@pytest.fixture
def open_saver(opening: Opening) -> OpenSaver:
    """Return ``open_saver(side, **options)``: a saver in the test's schema, closed after the test."""

    def open_one(side: str = ONE_OF_EACH[0], **options: Any) -> Any:
        return opening(side, (AsyncMySQLSaver, MySQLSaver), **options).store

    return open_one
