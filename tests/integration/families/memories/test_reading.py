"""Lists with a number beyond 64 bits in their filter, which the process checks item by item."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from locus_mysql import SyncMemoryStore
from locus_mysql.families.memories import reading
from locus_mysql.families.memories.statements.dialect import Range
from locus_mysql.families.memories.statements.filters import compile_filter
from locus_mysql.memory import Put
from tests.growth import assert_linear

from ...conftest import MakeConfig
from ...rows_read import rows_read

#: The value of the items: a number beyond 64 bits, which MySQL compares inexactly.
WANTED = 2**70 + 1


@pytest.mark.parametrize("query", [None, "tea", 'tea "in the morning"'])
def test_pages_read_by_key_have_the_order_of_one_page(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, query: str | None
) -> None:
    with SyncMemoryStore(make_config(driver="pymysql")) as store:
        store.put_batch(
            [_item(number, "green tea" + " in the morning" * (number % 3 == 0)) for number in range(60)]
        )  # written at the same time, so they are ordered by namespace and key
        store.put_batch([_item(number, "tea in the morning") for number in range(0, 60, 4)])
        whole = store._run_step(_listing(store, query, limit=1_000))
        monkeypatch.setattr(reading, "PAGE_SIZE", 7)
        assert store._run_step(_listing(store, query, limit=1_000)) == whole
        assert store._run_step(_listing(store, query, limit=20, offset=15)) == whole[15:35]
    assert len(whole) == 60


def _item(number: int, text: str) -> Any:
    return Put(("one", str(number % 2)), f"{number:02}", {"n": WANTED, "text": text})


def _listing(store: SyncMemoryStore, query: str | None, *, limit: int, offset: int = 0) -> Any:
    operations = store._operations.reading
    where, filter = Range(b"one\0"), compile_filter({"n": WANTED}, "i.value")
    if query is None:
        return operations.newest("default", where, filter, limit, offset)
    return operations.words("default", where, filter, query, limit, offset)


@pytest.mark.kept_tables  # a new schema: unpurged deleted rows would be counted as reads
def test_a_list_of_namespaces_reads_as_many_rows_as_there_are_namespaces(
    make_config: MakeConfig, raw: pymysql.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE_SIZE", 100)
    with SyncMemoryStore(make_config(driver="pymysql")) as store:
        filled = 0

        def cost(size: int) -> int:
            nonlocal filled
            store.put_batch([Put(("many", f"{number:05}", "x"), "key", 1) for number in range(filled, size)])
            filled = size
            listing = store._operations.reading.list_namespaces(
                "default", [("many", "*")], [("x",)], max_depth=2, limit=size + 1
            )
            found, rows = rows_read(raw, listing)
            assert len(found) == size
            return rows

        assert_linear(cost, 1_000)
