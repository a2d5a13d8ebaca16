"""The engine on which the integration tests run."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import Any

import pymysql

#: ``mysql`` or ``oceanbase``; set by ``ci/oceanbase run``.
ENGINE = os.environ.get("LOCUS_MYSQL_TEST_ENGINE", "mysql")

#: Round trips with which a new connection asks which engine the server is.
RECOGNISED = 0 if ENGINE == "mysql" else 1

#: The table of connections, with a column ``id`` and a column ``db``.
PROCESSLIST = (
    "(SELECT processlist_id AS id, processlist_db AS db FROM performance_schema.threads) AS connections"
    if ENGINE == "mysql"
    else "information_schema.processlist"
)

#: The table of connections with the statements in progress, in a column ``info``.
STATEMENTS_IN_PROGRESS = f"{'performance_schema' if ENGINE == 'mysql' else 'information_schema'}.processlist"

#: The beginning of a query for the connections, among a list of them, that wait for a lock.
#:
#: On MySQL, the query uses the indexes of the tables: a full scan takes the server 4 ms, during which it holds its own
#: locks. It identifies a waiting thread by its table lock: if another transaction moves the row, the waiting row lock
#: is listed under that transaction's thread. On OceanBase, the query uses the reason for which a statement is retried:
#: the view of locks does not list the waits of a statement in a packet of several.
LOCK_WAITS = (
    "SELECT STRAIGHT_JOIN DISTINCT t.processlist_id FROM performance_schema.threads t"
    " JOIN performance_schema.data_locks l ON l.thread_id = t.thread_id AND l.lock_type = 'TABLE'"
    " JOIN performance_schema.data_lock_waits w"
    "   ON w.requesting_engine_transaction_id = l.engine_transaction_id"
    " WHERE t.processlist_id IN"
    if ENGINE == "mysql"
    else "SELECT id FROM oceanbase.__all_virtual_processlist WHERE state = 'ACTIVE' AND retry_info = -6005 AND id IN"
)

#: OceanBase's error for a statement that meets a change of the schema by another session: "Schema try again".
SCHEMA_TRY_AGAIN = 5627
TRIED_FOR_S = 30.0


def run_statement(connection: pymysql.Connection[Any], sql: str, *params: Any) -> tuple[Any, ...]:
    """Run one statement, again where the schema changes meanwhile, and return its rows."""
    end = time.monotonic() + TRIED_FOR_S
    while True:
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, params or None)
                return cursor.fetchall()
        except pymysql.err.OperationalError as error:
            if error.args[0] != SCHEMA_TRY_AGAIN or time.monotonic() > end:
                raise
            time.sleep(0.05)


#: Patterns of the ids of tests that are left out on OceanBase, and the reasons. docs/design/engines.md has them.
LEFT_OUT = {
    r"::TestPlans::|test_a_page_(walks_its_index|reads_as_much_whatever)|test_rows_read_and_estimates_do_not": (
        "They read MySQL's query plans, or count the rows that it reads."
    ),
    r"test_other_tenants_have_no_part_in_them": "A query has a phrase in quotes, which mean nothing there.",
    r"test_of_a_word_that_all_texts_hold": "Of more hits than are examined, other ones are examined there.",
    r"test_words_are_found_before_and_after": "It drops the user of an account as MySQL does.",
    r"test_the_index_is_used|test_only_the_listed_rows_are_read|test_items_of_a_long_transcript"
    r"|test_the_last_entries_are_read_alone": "They read MySQL's plans or counters.",
    r"test_pages_hold_every|test_vacuum_removes_expired_threads|test_containment_is_the_server_s": (
        "They compare ids with rows as the administrator reads them, which are bytes there."
    ),
    r"families/test_migrating|test_changes_by_hand|test_health_names_a_missing": (
        "They upgrade or alter MySQL's tables; `migrate` is refused there."
    ),
    r"test_a_put_waits_for_the_writes": "It looks for a wait for a whole table where MySQL lists it.",
    r"memu/test_growth|test_the_tables_are_those_of_memu": "They read MySQL's counters, or the types of columns.",
}


def left_out_because(nodeid: str, fixtures: Sequence[str]) -> str | None:
    """Return the reason why a test is left out on this engine, or None if it runs there."""
    if ENGINE == "mysql":
        return "It is about partitions of OceanBase." if "test_partitions" in nodeid else None
    if "own_server" in fixtures:
        return "It restarts or misconfigures a private mysqld."
    if "published" in fixtures:
        return "It uses langgraph-checkpoint-mysql, whose tables are refused there (error 1101)."
    return next((reason for pattern, reason in LEFT_OUT.items() if re.search(pattern, nodeid)), None)
