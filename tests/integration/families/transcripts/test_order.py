"""The items of a long transcript are returned in their order, and the server reads no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.dialect.transcripts.dialect import TranscriptDialect
from locus_mysql.dialect.transcripts.pieces import RowKey
from locus_mysql.dialect.transcripts.reading import found_items
from locus_mysql.transcripts import NewItem, SyncTranscriptStore, TranscriptKey

from ...conftest import MakeConfig
from ...connecting import connect

ITEMS = 3_000


@pytest.mark.kept_tables
@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param({}, range(1, ITEMS + 1), id="all"),
        pytest.param({"last": True}, range(ITEMS, 0, -1), id="backwards"),
        pytest.param({"until": b"5500"}, range(1, 501), id="until an item"),
        pytest.param({"within": [(3, 4), (1_000, None)]}, [3, 4, *range(1_000, ITEMS + 1)], id="within ranges"),
    ],
)
def test_items_are_in_their_order_without_a_limit(
    make_config: MakeConfig, selection: dict[str, Any], expected: Any
) -> None:
    config = make_config(driver="pymysql", tenant="acme")
    key = TranscriptKey("long", "", "session")
    with SyncTranscriptStore(config) as store:
        for first in range(0, ITEMS, 500):  # the ids are in the opposite order
            store.append(key, [NewItem(number, f"{5_999 - number}") for number in range(first, first + 500)])
    where = RowKey("acme", b"long", b"", b"session", b"")
    query = TranscriptDialect(config.table_prefix).reading.items(where, **selection)
    with connect(config, config.database) as connection, connection.cursor() as cursor:
        rows_read = _counter(cursor)
        cursor.execute(query.sql, query.params)
        rows = cursor.fetchall()
        assert rows_read() <= len(expected) + 10
    found = found_items([query.row(*row) for row in rows])
    assert found is not None
    assert [row.seq for row in found.items] == list(expected)


def _counter(cursor: Any) -> Callable[[], int]:
    """Return a function that returns the number of rows read since now."""

    def rows() -> int:
        cursor.execute("SHOW SESSION STATUS WHERE Variable_name REGEXP '^Handler_read_(key|next|prev|rnd)$'")
        return sum(int(number) for _, number in cursor.fetchall())

    before = rows()
    return lambda: rows() - before
