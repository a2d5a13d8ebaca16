"""Every statement of the family has one placeholder for each parameter, and no other per cent sign."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.dialect.graphs import GraphDialect, VersionRow, WriteRow
from locus_mysql.dialect.graphs.inspection import PageFilter

ROW = VersionRow(b"n", b"v", b"p", "id", "parent", "ns", 1, "[0]", b"t", b"payload", "{}", b"r", (b"a", b"b" * 300_000))

#: An argument for each parameter name.
ARGUMENTS: dict[str, Any] = {
    "row": ROW,
    "rows": (WriteRow(b"k", -1, "t", "p", "c", b"x"), WriteRow(b"k", 1, "t", "p", "c", b"x")),
    "in_epoch": True,
    "replace": True,
    "known": (b"epoch", [1024, 2048]),
    "before": b"v",
    "before_id": "id",
    "before_seq": 4,
    "channels": ["a", "b"],
    "parts": [1024, 2048],
    "run_keys": [b"r", b"s"],
    "limit": 10,
    "offset": 0,
    "keep": 3,
    "depth": 5,
    "ttl_us": 5,
    "age_us": 5,
    "pattern": "a*",
    "account": "'agent'@'%%'",
    "after": "t",
    "base": (b"v", b"token"),
    "asked": PageFilter("a*"),
    "end": None,
    "count": 5,
    "newest": 5,
    "one_in": 4,
    "threads": 3,
}


TABLES = {"p_version_threads", "p_versions", "p_version_parts", "p_version_writes", "p_version_ledger"}


def statements() -> Iterator[tuple[str, Statement]]:
    """Yield the statements of every public method, also with None or False for optional arguments."""
    dialect = GraphDialect("p_")
    for family in (
        *(
            dialect.threads,
            dialect.saving,
            dialect.loading,
            dialect.removing,
            dialect.ledger,
            dialect.inspection,
            dialect.measuring,
        ),
        dialect.schema,
    ):
        for name, method in inspect.getmembers(family, inspect.ismethod):
            if name.startswith("_"):
                continue
            parameters = inspect.signature(method).parameters.values()
            given = {
                one.name: ARGUMENTS.get(one.name, b"bytes" if "bytes" in str(one.annotation) else "text")
                for one in parameters
            }
            less = {one.name: None for one in parameters if "None" in str(one.annotation)}
            less |= {one.name: False for one in parameters if str(one.annotation) == "bool"}
            for arguments in (given, {**given, **less}):
                outcome = method(**arguments)
                for statement in outcome if isinstance(outcome, tuple) else (outcome,):
                    if isinstance(statement, Statement):
                        yield f"{type(family).__name__}.{name}", statement


ALL = list(statements())


def test_all_statements_are_collected() -> None:
    assert len({name for name, _ in ALL}) >= 22


@pytest.mark.parametrize(("name", "statement"), ALL, ids=[f"{name}-{number}" for number, (name, _) in enumerate(ALL)])
class TestEach:
    def test_a_statement_has_a_placeholder_for_each_parameter(self, name: str, statement: Statement) -> None:
        assert statement.sql.count("%s") == len(statement.params)
        assert statement.sql.count("%") == len(statement.params)

    def test_a_statement_names_only_our_tables(self, name: str, statement: Statement) -> None:
        assert ";" not in statement.sql
        assert statement.sql == statement.sql.strip()
        assert "{" not in statement.sql
        assert not re.search(r"<[a-z]+>", statement.sql), "a piece was not filled in"
        for table in re.findall(r"(?:FROM|JOIN|INTO|UPDATE|EXISTS|TABLE) `(\w+)`", statement.sql):
            assert table in TABLES

    def test_its_parameters_are_of_the_kinds_that_drivers_know(self, name: str, statement: Statement) -> None:
        for parameter in statement.params:
            assert parameter is None or type(parameter) in {str, bytes, int}


def test_tables_are_made_only_if_missing_and_carry_their_version() -> None:
    for statement in GraphDialect("p_").schema.create():
        assert statement.sql.startswith("CREATE TABLE IF NOT EXISTS `p_version")
        assert "COMMENT='locus-mysql layout 3, versions'" in statement.sql
        assert "COLLATE=utf8mb4_0900_bin" in statement.sql
        assert ("AUTO_INCREMENT" in statement.sql) == ("KEY drawn (seq)" in statement.sql)
        (primary,) = re.findall(r"PRIMARY KEY \((.*?)\)", statement.sql)
        assert primary.startswith(("tenant, thread_id", "tenant, token"))
