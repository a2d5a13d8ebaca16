"""Variants of the dialect: statements for other engines, derived from MySQL's."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from locus_mysql.dialect import Dialect, Query, Statement
from locus_mysql.dialect.schema import Schema, Table
from locus_mysql.dialect.sql import SQL
from locus_mysql.dialect.statement import Text
from locus_mysql.dialect.variants import OCEANBASE, FamilyRefused, Rule, Variant, variant_of

from .every_statement import every_statement

#: The name of a parameter.
NAME = r"(?<![\w:]):([a-z]\w*)"

READ = SQL("SELECT a FROM {t}{which}")


def read(which: str = "", family: str = "toys") -> Statement:
    return READ(Dialect(Schema(family, 1, ()), {"t": "p_t"}), pieces={"which": which})


class Row(NamedTuple):
    """A row with a text, with bytes, and with a value of either type."""

    id: str | None
    token: bytes
    value: str | bytes


def variant() -> Variant:
    return Variant(
        "Elsewhere",
        families=("toys",),
        rules=(Rule("FROM", "OUT OF", ""),),
        settings={},
        limit_us="limit_us",
        errors={},
        supports_group_commit=False,
    )


def test_a_rule_changes_every_statement() -> None:
    assert variant().statement(Statement("SELECT 1 FROM x WHERE a = %s", (2,))) == Statement(
        "SELECT 1 OUT OF x WHERE a = %s", (2,)
    )


def test_a_template_and_a_piece_are_replaced_and_filled() -> None:
    elsewhere = variant()
    elsewhere.instead_of(READ.text, "SELECT DISTINCT a FROM {t}{which}")
    elsewhere.instead_of(" WHERE a", " WHERE b")
    assert elsewhere.statement(read(" WHERE a")).sql == "SELECT DISTINCT a OUT OF `p_t` WHERE b"
    assert read(" WHERE a").sql == "SELECT a FROM `p_t` WHERE a"


def test_a_family_that_does_not_hold_there_is_refused() -> None:
    with pytest.raises(FamilyRefused, match=r"'games' are not supported on Elsewhere.*docs/servers.md"):
        variant().statement(read(family="games"))


def test_no_table_of_a_refused_family_is_created() -> None:
    with pytest.raises(FamilyRefused):
        OCEANBASE.statement(Schema("games", 1, (Table("p_t", "(a INT)"),)).create()[0])


def test_ids_are_text_again_and_bytes_stay() -> None:
    query = Query("SELECT", row=Row)
    rows = [("ä".encode(), b"t", b"v"), (None, b"t", "v")]
    assert list(OCEANBASE.rows(query, rows)) == [("ä", b"t", b"v"), (None, b"t", "v")]
    assert OCEANBASE.rows(Statement("SELECT"), rows) is rows


def test_replacements_take_the_parameters_of_mysqls_statements() -> None:
    assert OCEANBASE.replacements
    for text, replacement in OCEANBASE.replacements.items():
        assert replacement.count("%s") == text.count("%s"), text
        assert {*re.findall(NAME, replacement)} <= {*re.findall(NAME, text)}, text
    supported = [
        statement
        for _, _, statement in every_statement()
        if not isinstance(statement.sql, Text) or statement.sql.shared.get("FAMILY") in {None, *OCEANBASE.families}
    ]
    assert len(supported) > 200
    for statement in supported:
        translated = OCEANBASE.statement(statement)
        assert translated.sql.count("%s") == len(translated.params), statement.sql
        # Its text uses some of the values of MySQL's, in any order, and each as often as it wants.
        assert {*map(repr, translated.params)} <= {*map(repr, statement.params)}, statement.sql


@pytest.mark.parametrize(
    ("mysql", "oceanbase"),
    [
        (
            "SELECT * FROM (VALUES ROW(%s, %s), ROW(%s, %s)) AS fresh (name, value)",
            "SELECT * FROM (SELECT %s AS name, %s AS value UNION ALL SELECT %s, %s) AS fresh",
        ),
        ("SELECT 1 FOR SHARE", "SELECT 1 LOCK IN SHARE MODE"),
        ("SELECT j.a COLLATE utf8mb4_0900_bin AS a", "SELECT j.a AS a"),
        (
            "SELECT UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND",
            "SELECT CAST(TIMESTAMPADD(MICROSECOND, -%s, SYSDATE(6)) AS DATETIME(6))",
        ),
        (
            "CREATE TABLE t (a VARCHAR(512) NOT NULL, b LONGTEXT COLLATE utf8mb4_0900_ai_ci) COLLATE=utf8mb4_0900_bin",
            "CREATE TABLE t (a VARBINARY(2048) NOT NULL, b LONGTEXT COLLATE utf8mb4_general_ci) COLLATE=utf8mb4_bin",
        ),
    ],
)
def test_oceanbase_gets_what_it_understands(mysql: str, oceanbase: str) -> None:
    assert OCEANBASE.statement(Statement(mysql)).sql == oceanbase


def test_the_message_of_a_duplicate_names_its_table_as_mysqls() -> None:
    insert = Statement("INSERT INTO `p_t` (a) VALUES (%s)", ("it's for key 'x'",))
    message = "Duplicate entry 'it's for key 'x'' for key 'PRIMARY'"
    named = "Duplicate entry 'it's for key 'x'' for key 'p_t.PRIMARY'"
    assert OCEANBASE.error(1062, message, insert) == (1062, named)
    assert OCEANBASE.error(1062, named, insert) == (1062, named)


def test_an_engine_is_recognised_by_its_version() -> None:
    assert variant_of("5.7.25-OceanBase seekdb-v1.4.0.0") is OCEANBASE
    assert variant_of("9.7.0 MySQL Community Server - GPL") is None
