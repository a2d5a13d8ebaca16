"""Every statement has one placeholder for each parameter, and no other per cent sign."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.dialect.checkpoints.inspection import ThreadRange
from locus_mysql.dialect.checkpoints.maintenance import PlacedRow
from locus_mysql.dialect.checkpoints.queries import CheckpointPlace
from locus_mysql.dialect.checkpoints.saving import NewRow
from locus_mysql.dialect.checkpoints.tables import INFIXES
from locus_mysql.dialect.like import like

LOOKING = CheckpointDialect("p_").inspection
ROW = NewRow("c", b"t" * 16, b"payload")

#: An argument for each parameter name.
ARGUMENTS: dict[str, Any] = {
    "row": ROW,
    "rows": (ROW,),
    "parent": (1, b"p" * 16),
    "base": (2, b"b" * 16),
    "base_seq": 2,
    "token": b"t" * 16,
    "seqs": (1, 2, 3),
    "placed": PlacedRow(ROW, 1, 1, "2026-01-01 00:00:00.000000"),
    "limit": 10,
    "offset": 0,
    "keep": 3,
    "held": (1, 2),
    "lease_us": 1,
    "landed": Statement("SELECT 1 FROM t WHERE a = %s", ("a",)),
    "ttl_us": 5,
    "age_us": 5,
    "read_seq": 4,
    "bound": 5,
    "within": ThreadRange(("2026-01-01 00:00:00.000000", "a"), "2026-01-01", "2026-02-01"),
    "step": LOOKING.walk("x", ThreadRange(), 5),
    "threads": 5,
    "candidates": 5,
    "min_bytes": 5,
    "before_seq": 5,
    "size": 5,
    "newest": 5,
    "waiting_rows": 5,
    "one_in": 5,
    "tenant": "x",
    "pattern": "a*",
}

#: The position at which a page begins.
BEHIND: dict[str, Any] = {
    "find_by_metadata": CheckpointPlace("2026-01-01 00:00:00.000000", 1, "a"),
    "load_by_metadata": CheckpointPlace("2026-01-01 00:00:00.000000", 1, "a"),
    "load_newest": ("2026-01-01 00:00:00.000000", "a"),
}


def statements() -> Iterator[tuple[str, Statement]]:
    """Yield the statements of every public method of every family, also with None for optional arguments."""
    dialect = CheckpointDialect("p_")
    for family in (
        dialect.threads,
        dialect.checkpoints,
        dialect.loading,
        dialect.queries,
        dialect.maintenance,
        dialect.ledger,
        dialect.turns,
        dialect.inspection,
        dialect.measuring,
        dialect.schema,
    ):
        for name, method in inspect.getmembers(family, inspect.ismethod):
            if name.startswith("_"):
                continue
            parameters = inspect.signature(method).parameters.values()
            given = {one.name: ARGUMENTS.get(one.name, "text") for one in parameters}
            if "behind" in given:
                given["behind"] = BEHIND[name]
            optional = [one.name for one in parameters if "None" in str(one.annotation)]
            for arguments in (given, {**given, **dict.fromkeys(optional)}):
                outcome = method(**arguments)
                for statement in outcome if isinstance(outcome, tuple) else (outcome,):
                    if isinstance(statement, Statement):
                        yield f"{type(family).__name__}.{name}", statement


ALL = list(statements())


def test_all_statements_are_collected() -> None:
    assert len(ALL) > 60
    assert len({name for name, _ in ALL}) > 35


@pytest.mark.parametrize(("name", "statement"), ALL, ids=[f"{name}-{number}" for number, (name, _) in enumerate(ALL)])
class TestEach:
    def test_a_statement_has_a_placeholder_for_each_parameter(self, name: str, statement: Statement) -> None:
        assert statement.sql.count("%s") == len(statement.params)
        assert statement.sql.count("%") == len(statement.params)

    def test_a_statement_names_only_our_tables(self, name: str, statement: Statement) -> None:
        assert not statement.sql.endswith(";")
        assert ";" not in statement.sql
        assert statement.sql == statement.sql.strip()
        assert "{" not in statement.sql
        for table in re.findall(r"(?:FROM|JOIN|INTO|UPDATE|EXISTS|TABLE) `(\w+)`", statement.sql):
            assert table in {"p_threads", "p_checkpoints", "p_ledger"}

    def test_its_parameters_are_of_the_kinds_that_drivers_know(self, name: str, statement: Statement) -> None:
        for parameter in statement.params:
            assert parameter is None or type(parameter) in {str, bytes, int}


@pytest.mark.parametrize(
    ("glob", "pattern"),
    [
        ("*", "%"),
        ("a?c", "a_c"),
        ("100%", "100\\%"),
        ("a_b", "a\\_b"),
        ("a\\b", "a\\\\b"),
        ("\\*", "\\\\%"),
        ("[a]{b}", "[a]{b}"),
        ("", ""),
        ("**", "%%"),
    ],
)
def test_a_glob_becomes_a_like_pattern(glob: str, pattern: str) -> None:
    assert like(glob) == pattern


class TestSchema:
    def test_tables_are_made_only_if_missing_and_carry_their_version(self) -> None:
        for statement in CheckpointDialect("p_").schema.create():
            assert statement.sql.startswith("CREATE TABLE IF NOT EXISTS `p_")
            assert "COMMENT='locus-mysql layout 3, agents'" in statement.sql
            assert "ENGINE=InnoDB" in statement.sql
            assert "COLLATE=utf8mb4_0900_bin" in statement.sql
            assert "AUTO_INCREMENT" not in statement.sql
            assert "TIMESTAMP" not in statement.sql
            assert statement.params == ()

    def test_every_key_begins_with_the_tenant(self) -> None:
        keys = [
            re.findall(r"PRIMARY KEY \((.*?)\)", statement.sql) for statement in CheckpointDialect().schema.create()
        ]
        assert keys == [["tenant, thread_id"], ["tenant, thread_id, seq"], ["tenant, token"]]

    def test_each_kind_of_states_has_tables_of_its_own(self) -> None:
        names = [name for kind in INFIXES for name in CheckpointDialect("p_", kind).schema.names]
        assert len(set(names)) == 3 * len(INFIXES)
        assert max(map(len, names)) - len("p_") + 40 <= 64

    def test_the_full_text_index_is_as_configured(self) -> None:
        assert "FULLTEXT" in CheckpointDialect().schema.create()[1].sql
        assert "ngram" not in CheckpointDialect().schema.create()[1].sql
        assert "FULLTEXT" not in CheckpointDialect(search=False).schema.create()[1].sql
        assert "WITH PARSER ngram" in CheckpointDialect(search_parser="ngram").schema.create()[1].sql
        (needed,) = CheckpointDialect(search_parser="ngram").schema.needed
        assert "ADD FULLTEXT KEY words (search_text) WITH PARSER ngram" in needed.advice
        assert CheckpointDialect(search=False).schema.needed == ()

    def test_names_are_quoted(self) -> None:
        assert "`odd_threads`" in CheckpointDialect("odd_").threads.count("x", "*").sql
        assert "`threads`" in CheckpointDialect("").threads.count("x", "*").sql


@pytest.mark.parametrize(
    ("sql", "brings_rows"),
    [
        ("SELECT 1", True),
        ("select\n1", True),
        ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", True),
        ("INSERT INTO t SELECT 1", False),
        ("START TRANSACTION", False),
        ("COMMIT", False),
        ("CALL p()", None),
        ("", None),
    ],
)
def test_a_statement_knows_whether_it_brings_rows(sql: str, brings_rows: bool | None) -> None:
    assert Statement(sql).brings_rows is brings_rows
