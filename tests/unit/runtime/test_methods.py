"""Operations as methods of both sides: signature, docstring and execution."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from locus_mysql import CheckpointStore
from locus_mysql.engine.operation import drive_awaited, drive_blocking
from locus_mysql.errors import ConfigError
from locus_mysql.integrations.langgraph import AsyncMySQLStore, MySQLSaver
from locus_mysql.integrations.openai_agents import OpenAISession
from locus_mysql.runtime.stores import awaited_method, blocking_method

T = TypeVar("T")


class Operations:
    """Adds numbers: each step is a number, answered with its double."""

    def total(self, first: int, *others: int, scale: Decimal | None = None) -> Generator[int, int, str]:
        """Return the sum of the doubles."""
        total = 0
        for number in (first, *others):
            total += yield number
        return str(total * (scale or 1))


class Blocking:
    """Runs operations, blocking."""

    _operations = Operations()

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        return drive_blocking(operation, lambda number: number * 2)

    total = blocking_method(Operations.total)


class Awaited:
    """Runs operations, awaited."""

    _operations = Operations()

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        async def double(number: int) -> int:
            return number * 2

        return await drive_awaited(operation, double)

    total = awaited_method(Operations.total)


def test_both_sides_return_what_the_operation_returns() -> None:
    assert Blocking().total(1, 2, scale=Decimal(3)) == "18"
    assert asyncio.run(Awaited().total(1, 2, scale=Decimal(3))) == "18"


@pytest.mark.parametrize("side", [Blocking, Awaited])
def test_a_method_shows_the_name_signature_and_docstring_of_its_operation(side: type) -> None:
    method: Any = vars(side)["total"]
    parameters = inspect.signature(method).parameters
    assert list(parameters) == ["self", "first", "others", "scale"]
    assert parameters["scale"].annotation == Decimal | None
    assert inspect.signature(method).return_annotation is str
    assert (method.__name__, method.__doc__) == ("total", "Return the sum of the doubles.")
    assert inspect.get_annotations(method)["return"] is str


def test_an_exception_of_a_step_is_raised_in_the_operation() -> None:
    def operation() -> Generator[int, int, str]:
        try:
            yield 0
        except ZeroDivisionError:
            return "recovered"
        return "no error"

    assert drive_blocking(operation(), lambda number: 1 // number) == "recovered"


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
