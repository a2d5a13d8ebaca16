"""Every statement of every family has one placeholder for each parameter, and no other per cent sign."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import locus_mysql
from locus_mysql.dialect import Statement
from locus_mysql.dialect.statement import like
from locus_mysql.families.checkpoints.statements.tables import INFIXES, checkpoint_dialect

from .every_statement import DIALECTS, every_statement

ALL = list(every_statement())


def test_the_statements_of_every_family_are_collected() -> None:
    package = Path(locus_mysql.__file__).parent
    folders = {path.parents[1].name for path in package.glob("*/*/statements/tables.py")}
    folders |= {path.parent.name for path in package.glob("integrations/*/tables.py")}
    assert folders == {*DIALECTS}, "add the family's dialect to DIALECTS in tests/unit/dialect/every_statement.py"
    assert folders == {folder for folder, _, _ in ALL}
    names = {(folder, name) for folder, name, _ in ALL}
    assert len(names) > 230


@pytest.mark.parametrize("folder", DIALECTS)
class TestEach:
    @pytest.fixture
    def statements(self, folder: str) -> dict[str, Statement]:
        """Return every statement of a family, by its name and its number."""
        return {f"{name}-{number}": one for number, (family, name, one) in enumerate(ALL) if family == folder}

    def test_a_statement_has_a_placeholder_for_each_parameter(self, statements: dict[str, Statement]) -> None:
        counts = {name: (one.sql.count("%s"), one.sql.count("%"), len(one.params)) for name, one in statements.items()}
        assert [name for name, found in counts.items() if len(set(found)) > 1] == []

    def test_a_statement_names_only_tables_of_its_family(self, folder: str, statements: dict[str, Statement]) -> None:
        tables = {*DIALECTS[folder].names.values(), "p_t"}
        named = {
            name: set(re.findall(r"(?:FROM|JOIN|INTO|UPDATE|EXISTS|TABLE) `(\w+)`", one.sql))
            for name, one in statements.items()
        }
        assert {name: found - tables for name, found in named.items() if not found <= tables} == {}

    def test_a_statement_is_one_statement_without_open_placeholders(self, statements: dict[str, Statement]) -> None:
        texts = {name: one.sql for name, one in statements.items()}
        assert [name for name, sql in texts.items() if ";" in sql or sql != sql.strip()] == []
        assert [name for name, sql in texts.items() if re.search(r"\{[A-Za-z_]", sql)] == []

    def test_its_parameters_are_of_the_kinds_that_drivers_know(self, statements: dict[str, Statement]) -> None:
        kinds = {name: {type(parameter) for parameter in one.params} for name, one in statements.items()}
        assert {name: found for name, found in kinds.items() if found - {str, bytes, int, type(None)}} == {}


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
    def test_every_key_begins_with_the_tenant(self) -> None:
        keys = [
            re.findall(r"PRIMARY KEY \((.*?)\)", statement.sql) for statement in checkpoint_dialect().schema.create()
        ]
        assert keys == [["tenant, thread_id"], ["tenant, thread_id, seq"], ["tenant, token"]]

    def test_each_kind_of_states_has_tables_of_its_own(self) -> None:
        names = [name for kind in INFIXES for name in checkpoint_dialect("p_", kind).schema.names]
        assert len(set(names)) == 3 * len(INFIXES)
        assert max(map(len, names)) - len("p_") + 40 <= 64

    def test_the_full_text_index_is_as_configured(self) -> None:
        assert "FULLTEXT" in checkpoint_dialect().schema.create()[1].sql
        assert "ngram" not in checkpoint_dialect().schema.create()[1].sql
        assert "FULLTEXT" not in checkpoint_dialect(search=False).schema.create()[1].sql
        assert "WITH PARSER ngram" in checkpoint_dialect(search_parser="ngram").schema.create()[1].sql
        (needed,) = checkpoint_dialect(search_parser="ngram").schema.needed
        assert "ADD FULLTEXT KEY ngrams (tenant_word, search_text) WITH PARSER ngram" in needed.advice
        assert checkpoint_dialect(search=False).schema.needed == ()


@pytest.mark.parametrize(
    ("sql", "brings_rows"),
    [
        ("SELECT 1", True),
        ("select\n1", True),
        ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", True),
        ("\n(SELECT 1) UNION ALL (SELECT 2)", True),
        ("INSERT INTO t SELECT 1", False),
        ("START TRANSACTION", False),
        ("COMMIT", False),
        ("CALL p()", None),
        ("", None),
    ],
)
def test_a_statement_knows_whether_it_brings_rows(sql: str, brings_rows: bool | None) -> None:
    assert Statement(sql).brings_rows is brings_rows
