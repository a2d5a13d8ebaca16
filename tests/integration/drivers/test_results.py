"""Every driver returns the same results in the same form.

Whichever library logged in, results are read in one of three ways: blocking, awaited, or blocking in a worker thread.
So a test runs on one side of each; tests that also depend on the library run on every side. ``ci/test --all`` runs
everything on every side.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_mysql.dialect.statement import Param, Statement
from locus_mysql.drivers.interface import WATCH, PacketTooLarge, ReadLimitReached, ServerError

from .conftest import Connect
from .sides import SYNC_SIDES, DriverConnection, each_way_of_reading

COLUMNS = {
    "id": ("BIGINT AUTO_INCREMENT PRIMARY KEY", "7", 7),
    "big": ("BIGINT UNSIGNED", "18446744073709551615", 2**64 - 1),
    "small": ("TINYINT(1)", "1", 1),
    "name": ("VARCHAR(20)", "'ä😀'", "ä😀"),
    "body": ("LONGTEXT", "'text'", "text"),
    "latin": ("VARCHAR(20) CHARACTER SET latin1", "'ä'", "ä"),
    "kind": ("ENUM('a', 'b')", "'b'", "b"),
    "raw": ("LONGBLOB", "x'00ff27'", b"\x00\xff'"),
    "short_raw": ("VARBINARY(8)", "x'80'", b"\x80"),
    "fixed_raw": ("BINARY(2)", "x'8182'", b"\x81\x82"),
    "document": ("JSON", "'{\"ä\": [1, null]}'", '{"ä": [1, null]}'),
    "at": ("DATETIME(6)", "'2024-02-29 23:59:59.000001'", datetime(2024, 2, 29, 23, 59, 59, 1)),
    "at_second": ("DATETIME", "'2024-02-29 23:59:59'", datetime(2024, 2, 29, 23, 59, 59)),
    "stamp": ("TIMESTAMP", "'2024-02-29 23:59:59'", datetime(2024, 2, 29, 23, 59, 59)),
    "day": ("DATE", "'2024-02-29'", "2024-02-29"),
    "clock": ("TIME", "'-10:11:12'", "-10:11:12"),
    "price": ("DECIMAL(10,2)", "12.50", Decimal("12.50")),
    "ratio": ("DOUBLE", "0.1", 0.1),
    "nothing": ("INT", "NULL", None),
}


async def test_a_column_s_value_has_one_form_whatever_the_library(line: DriverConnection) -> None:
    table = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
    values = ", ".join(sql for _, sql, _ in COLUMNS.values())
    _, _, selected = await line.execute(
        Statement(f"CREATE TABLE t ({table})"),
        Statement(f"INSERT INTO t VALUES ({values})"),
        Statement("SELECT * FROM t"),
    )
    (row,) = selected.rows
    assert isinstance(row, tuple)
    for name, expected, value in zip(COLUMNS, [value for _, _, value in COLUMNS.values()], row, strict=True):
        assert (name, value) == (name, expected)
        assert type(value) is type(expected), name


@each_way_of_reading
async def test_expressions_have_the_same_form_as_columns(line: DriverConnection) -> None:
    ((number, text, raw, document, nothing),) = await line.rows(
        "SELECT COUNT(*), CONCAT('a', 1), UNHEX('ff'), JSON_OBJECT('a', 1), NULL"
    )
    assert (number, text, raw, document, nothing) == (1, "a1", b"\xff", '{"a": 1}', None)


@each_way_of_reading
async def test_a_date_that_python_cannot_hold_stays_text(line: DriverConnection) -> None:
    await line.execute(Statement("SET SESSION sql_mode = ''"))
    assert await line.value("SELECT CAST('2024-00-00' AS DATETIME)") == "2024-00-00 00:00:00"


@each_way_of_reading
async def test_each_statement_of_a_packet_has_its_own_result(line: DriverConnection) -> None:
    results = await line.execute(
        Statement("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)"),
        Statement("INSERT INTO t (n) VALUES (%s), (%s)", (1, 2)),
        Statement("SELECT n FROM t WHERE n > 2"),
        Statement("UPDATE t SET n = n + 1"),
        Statement("SELECT n FROM t ORDER BY id"),
        Statement("DELETE FROM t WHERE n = 99"),
    )
    assert [list(result.rows) for result in results] == [[], [], [], [], [(2,), (3,)], []]
    assert [result.affected for result in results] == [0, 2, 0, 2, 0, 0]
    assert results[1].last_insert_id == 1


@each_way_of_reading
async def test_affected_counts_rows_that_changed_not_rows_that_matched(line: DriverConnection) -> None:
    *_, same, other = await line.execute(
        Statement("CREATE TABLE t (n INT)"),
        Statement("INSERT INTO t VALUES (1)"),
        Statement("UPDATE t SET n = 1"),
        Statement("UPDATE t SET n = 2"),
    )
    assert (same.affected, other.affected) == (0, 1)


@each_way_of_reading
async def test_a_number_set_by_last_insert_id_comes_back(line: DriverConnection) -> None:
    *_, drawn, read = await line.execute(
        Statement("CREATE TABLE t (n BIGINT UNSIGNED)"),
        Statement("INSERT INTO t VALUES (%s)", (2**63,)),
        Statement("UPDATE t SET n = LAST_INSERT_ID(n + 1)"),
        Statement("SELECT LAST_INSERT_ID()"),
    )
    assert drawn.last_insert_id == 2**63 + 1
    assert list(read.rows) == [(2**63 + 1,)]


@each_way_of_reading
async def test_no_statements_are_no_round_trip(line: DriverConnection) -> None:
    assert await line.execute() == []


@each_way_of_reading
async def test_without_pipeline_the_results_are_the_same(connect: Connect) -> None:
    line = await connect(pipeline=False)
    results = await line.execute(Statement("SELECT 1"), Statement("DO 1"), Statement("SELECT %s", ("a",)))
    assert [list(result.rows) for result in results] == [[(1,)], [], [("a",)]]


async def test_without_pipeline_a_packet_holds_one_statement(connect: Connect) -> None:
    line = await connect(pipeline=False)
    with pytest.raises(ServerError) as caught:
        await line.execute(Statement("DO 1; DO 2"))
    assert caught.value.errno == 1064


@each_way_of_reading
async def test_an_error_ends_the_rest_of_a_packet_and_leaves_the_connection_usable(line: DriverConnection) -> None:
    await line.execute(Statement("CREATE TABLE t (n INT PRIMARY KEY)"))
    with pytest.raises(ServerError) as caught:
        await line.execute(
            Statement("BEGIN"),
            Statement("INSERT INTO t VALUES (1)"),
            Statement("INSERT INTO t VALUES (1)"),
            Statement("INSERT INTO t VALUES (2)"),
            Statement("COMMIT"),
        )
    assert caught.value.errno == 1062
    assert "Duplicate entry" in caught.value.message
    assert not line.closed
    assert await line.rows("SELECT n FROM t") == [(1,)], "the transaction is still open"
    await line.execute(Statement("ROLLBACK"))
    assert await line.rows("SELECT n FROM t") == []


@each_way_of_reading
async def test_without_pipeline_an_error_ends_the_rest_too(connect: Connect) -> None:
    line = await connect(pipeline=False)
    await line.execute(Statement("CREATE TABLE t (n INT)"))
    with pytest.raises(ServerError):
        await line.execute(Statement("SELECT nonsense"), Statement("INSERT INTO t VALUES (1)"))
    assert await line.rows("SELECT n FROM t") == []


@each_way_of_reading
async def test_an_error_among_the_rows_of_a_result_is_raised(line: DriverConnection) -> None:
    with pytest.raises(ServerError) as caught:
        await line.rows("SELECT 18446744073709551615 + n FROM (SELECT 0 n UNION ALL SELECT 1) numbers ORDER BY n")
    assert caught.value.errno == 1690
    assert await line.value("SELECT 1") == 1


@pytest.mark.slow
@each_way_of_reading
@pytest.mark.parametrize("size", [2**24 - 5, 2**24 - 1, 2**24, 2**24 + 70_000], ids=str)
async def test_values_larger_than_one_wire_packet_arrive_whole(line: DriverConnection, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    ((echoed, after),) = await line.rows("SELECT %s, %s", body[:size], "after")
    assert len(echoed) == size
    assert echoed == body[:size]
    assert after == "after"


async def test_the_largest_packet_is_known(line: DriverConnection) -> None:
    assert line.connection.max_allowed_packet == await line.value("SELECT @@max_allowed_packet")


@each_way_of_reading
async def test_a_statement_too_large_for_the_server_is_not_sent(line: DriverConnection) -> None:
    with pytest.raises(PacketTooLarge):
        await line.value("SELECT LENGTH(%s)", b"x" * (line.connection.max_allowed_packet + 1))
    assert await line.value("SELECT 1") == 1


@pytest.mark.slow
@each_way_of_reading
async def test_statements_too_large_together_go_one_by_one(line: DriverConnection) -> None:
    half = b"x" * (line.connection.max_allowed_packet // 2)
    results = await line.execute(*[Statement("SELECT LENGTH(%s)", (half,)) for _ in range(2)])
    assert [list(result.rows) for result in results] == [[(len(half),)], [(len(half),)]]


async def test_the_session_is_strict_and_compares_by_code_point(line: DriverConnection) -> None:
    ((mode, zone, isolation, autocommit, collation, charset),) = await line.rows(
        "SELECT @@sql_mode, @@time_zone, @@transaction_isolation, @@autocommit, @@collation_connection,"
        " @@character_set_results"
    )
    assert {"STRICT_TRANS_TABLES", "ONLY_FULL_GROUP_BY"} <= set(mode.split(","))
    assert not {"NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"} & set(mode.split(","))
    assert (zone, isolation, autocommit) == ("+00:00", "READ-COMMITTED", 1)
    assert (collation, charset) == ("utf8mb4_0900_bin", "utf8mb4")


HOSTILE = st.sampled_from(["'", "\\", "\\'", "''", '"', "`", "\0", "%s", "%", ";", "-- ", "/*", "\n", "\x1a", "😀"])
TEXT = st.lists(st.one_of(HOSTILE, st.text(max_size=20))).map("".join)
BYTES = st.one_of(st.binary(max_size=300), TEXT.map(lambda text: text.encode() + b"\xff\xc0\xed\xa0\x80'"))
PARAMS = st.one_of(TEXT, BYTES, st.integers(-(2**63), 2**64 - 1), st.none())


@each_way_of_reading
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(params=st.lists(PARAMS, min_size=1, max_size=6))
async def test_any_value_arrives_unchanged(line: DriverConnection, params: list[Param]) -> None:
    (row,) = await line.rows("SELECT " + ", ".join(["%s"] * len(params)), *params)
    assert row == tuple(params)


@each_way_of_reading
async def test_a_row_larger_than_one_wire_packet_arrives_whole(line: DriverConnection) -> None:
    half = bytes(range(256)) * 2**15  # 8 MB, so neither value is as large as a packet
    ((first, nothing, second, empty),) = await line.rows("SELECT %s, NULL, %s, ''", half, half[1:])
    assert (first, second) == (half, half[1:])
    assert (nothing, empty) == (None, "")


@each_way_of_reading
async def test_more_results_than_packet_numbers_keep_their_order(line: DriverConnection) -> None:
    statements = [Statement("SELECT %s, NULL, ''", (n,)) if n % 3 else Statement("DO 1") for n in range(400)]
    results = await line.execute(*statements)
    assert [list(result.rows) for result in results] == [[(n, None, "")] if n % 3 else [] for n in range(400)]


@each_way_of_reading
async def test_many_rows_arrive_in_order(line: DriverConnection) -> None:
    rows = await line.rows(
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
        " SELECT /*+ SET_VAR(cte_max_recursion_depth = 10000) */ i, REPEAT('ä', i % 300), IF(i % 2, NULL, '') FROM n"
    )
    assert rows == [(i, "ä" * (i % 300), None if i % 2 else "") for i in range(10_000)]


@each_way_of_reading
async def test_zero_rows_of_any_number_of_columns_are_no_rows(line: DriverConnection) -> None:
    columns = ", ".join(f"{n} AS c{n}" for n in range(300))
    one, many, after = await line.execute(
        Statement("SELECT 1 FROM DUAL WHERE FALSE"),
        Statement(f"SELECT * FROM (SELECT {columns}) t WHERE c0 = 1"),
        Statement("SELECT 1"),
    )
    assert [list(result.rows) for result in (one, many, after)] == [[], [], [(1,)]]


@each_way_of_reading
async def test_an_error_after_large_results_leaves_the_connection_usable(line: DriverConnection) -> None:
    with pytest.raises(ServerError) as caught:
        await line.execute(
            Statement("SELECT %s", (b"x" * 2**20,)), Statement("SELECT nonsense"), Statement("SELECT SLEEP(30)")
        )
    assert caught.value.errno == 1054
    assert await line.value("SELECT 1") == 1


@each_way_of_reading
async def test_text_that_would_be_a_number_of_results_or_rows_is_text(line: DriverConnection) -> None:
    row = ("\xfe\0\0\x02\0", b"\xfe\0\0\x02\0", b"\xff\x10\x04#HY000no", b"\0\0\0\x02\0\0\0", b"\xfb")
    assert await line.rows("SELECT %s, %s, %s, %s, %s", *row) == [row]


@pytest.mark.parametrize("side", SYNC_SIDES, ids=repr)
async def test_calls_of_a_blocking_connection_are_watched(line: DriverConnection) -> None:
    """A watch may end a call whose answer is larger than it allows."""
    calls: list[Any] = []

    class Watch:
        def begin(self) -> None:
            calls.append("begin")

        def received(self, size: int) -> None:
            if size > 10_000:
                raise ReadLimitReached(10_000)

        def end(self) -> None:
            calls.append("end")

    token = WATCH.set(Watch())
    try:
        assert await line.value("SELECT 1") == 1
        assert calls == ["begin", "end"]
        with pytest.raises(ReadLimitReached):
            await line.value("SELECT REPEAT('x', 200000)")
    finally:
        WATCH.reset(token)
    assert line.closed
