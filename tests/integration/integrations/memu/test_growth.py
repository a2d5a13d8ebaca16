"""The cost of filters with long lists of values, in rows that the server reads and in bytes sent."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from locus_mysql.drivers.wire.literals import packets
from locus_mysql.engine.operation import Operation
from locus_mysql.integrations.memu import MemuDatabase
from tests.growth import assert_linear

from ...conftest import MakeConfig
from ...rows_read import rows_read
from .conftest import UserModel

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables]  # new schemas: rows are counted

#: Number of records in the larger run.
MANY = 4_800


class Sent:
    """An operation whose statements are counted in bytes.

    Args:
        operation: The operation.
    """

    def __init__(self, operation: Operation[Any]) -> None:
        self._operation = operation
        self.bytes = 0

    def send(self, results: Any) -> Any:
        batch = self._operation.send(results)
        self.bytes += sum(map(len, packets(batch.statements, pipeline=True, limit_bytes=1 << 28)))
        return batch


@pytest.fixture
def memu(make_config: MakeConfig, raw: pymysql.Connection[Any]) -> Any:
    """A database with an item of each of many users."""
    database = MemuDatabase(make_config(driver="pymysql", table_prefix=""), user_model=UserModel)
    item = database.memory_item_repo.create_item(
        memory_type="event", summary="s", embedding=[1.0, 2.0], user_data={"user_id": "0"}
    )
    records = [item.model_copy(update={"id": f"{n:036}", "user_id": str(n)}) for n in range(1, MANY)]
    for record in records:
        record.extra = {"ref_id": f"r{record.user_id}"}
    database.restore(items=records)
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE TABLE memory_items")
    yield database
    database.close()


METHODS = ("where", "list_items_by_ref_ids", "vector_search_items", "remove")


def test_a_filter_of_four_times_as_many_values_costs_four_times_as_much(
    memu: Any, raw: pymysql.Connection[Any]
) -> None:
    sent: dict[tuple[str, int], int] = {}

    def cost(method: str, size: int) -> int:
        names = [str(number) for number in range(1, size)]
        where, operations = {"user_id__in": names}, memu.memory_item_repo._operations
        arguments: dict[str, tuple[Any, ...]] = {
            "where": (where,),
            "list_items_by_ref_ids": ([f"r{name}" for name in names], where),
            "vector_search_items": ([1.0, 0.0], size, where),
            "remove": (operations.conditions(where),),
        }
        counted = Sent(getattr(operations, method)(*arguments[method]))
        raw.autocommit(False)
        found, rows = rows_read(raw, counted)  # type: ignore[arg-type]
        assert len(found) == len(names), method
        sent[method, size] = counted.bytes
        raw.rollback()
        return rows

    for method in METHODS:
        # For few users, the server reads an index; for many, all rows.
        assert_linear(lambda size, method=method: cost(method, size), MANY // 4, most=8)
        assert_linear(lambda size, method=method: sent[method, size], MANY // 4)
