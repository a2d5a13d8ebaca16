"""Operations as methods of both sides: signature, docstring and execution."""

from __future__ import annotations

from collections.abc import Generator
from decimal import Decimal
from typing import TypeVar

import pytest

from locus_mysql import CheckpointStore
from locus_mysql.errors import ConfigError
from locus_mysql.integrations.langgraph import AsyncMySQLStore, MySQLSaver
from locus_mysql.integrations.openai_agents import OpenAISession

T = TypeVar("T")


class Operations:
    """Adds numbers: each step is a number, answered with its double."""

    def total(self, first: int, *others: int, scale: Decimal | None = None) -> Generator[int, int, str]:
        """Return the sum of the doubles."""
        total = 0
        for number in (first, *others):
            total += yield number
        return str(total * (scale or 1))


def test_the_advice_for_a_blocking_with_names_only_a_class_that_exists() -> None:
    dsn = "mysql://user@localhost/app"
    for store, advice in (
        (CheckpointStore(dsn), "write `async with`, or use SyncCheckpointStore."),
        (OpenAISession("s", dsn), "write `async with`."),
    ):
        with pytest.raises(ConfigError) as raised:
            store.__enter__()
        assert str(raised.value) == f"{type(store).__name__} is asynchronous: {advice}"


async def test_a_store_of_langgraph_is_shown_as_a_saver_is() -> None:
    dsn = "mysql://user:secret@localhost/app"
    saver, store = repr(MySQLSaver(dsn, driver="pymysql")), repr(AsyncMySQLStore(dsn, driver="pymysql"))
    assert store == saver.replace("MySQLSaver", "AsyncMySQLStore")
