"""`SQL` and `Select`: named parameters, lists, rows, pieces, and another engine's order of parameters."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from locus_mysql.dialect.schema import Schema
from locus_mysql.dialect.sql import SQL, Dialect, Select
from locus_mysql.dialect.statement import TEXT_LIMIT_CHARACTERS, TEXTS_LIMIT, Query, fill
from locus_mysql.dialect.variants import OCEANBASE


class Key(NamedTuple):
    tenant: str
    name: bytes


class Row(NamedTuple):
    number: int


class Item(NamedTuple):
    number: int
    content: bytes


@pytest.fixture
def dialect() -> Dialect:
    return Dialect(Schema("transcripts", 1, ()), {"items": "p_items"}, {"KEY": "t.tenant = :tenant AND t.name = :name"})


def test_parameters_come_from_named_tuples_and_keywords(dialect: Dialect) -> None:
    read = Select("SELECT 1 FROM {items} t WHERE {KEY} AND t.seq > :after AND t.tenant = :tenant", Row)
    query = read(dialect, Key("a", b"n"), after=5)
    assert isinstance(query, Query)
    assert query.row is Row
    assert query.sql == "SELECT 1 FROM `p_items` t WHERE t.tenant = %s AND t.name = %s AND t.seq > %s AND t.tenant = %s"
    assert query.params == ("a", b"n", 5, "a")


def test_a_list_has_a_place_for_each_element(dialect: Dialect) -> None:
    remove = SQL("DELETE FROM {items} WHERE seq IN (:seqs) OR (tenant, name) IN (:keys)")
    statement = remove(dialect, seqs=[1, 2, 3], keys=[Key("a", b"x"), Key("b", b"y")])
    assert statement.sql == "DELETE FROM `p_items` WHERE seq IN (%s, %s, %s) OR (tenant, name) IN ((%s, %s), (%s, %s))"
    assert statement.params == (1, 2, 3, "a", b"x", "b", b"y")
    assert remove(dialect, seqs=[1], keys=[Key("a", b"x")]).params == (1, "a", b"x")


def test_an_empty_list_is_refused(dialect: Dialect) -> None:
    with pytest.raises(ValueError, match="'seqs'"):
        SQL("DELETE FROM {items} WHERE seq IN (:seqs)")(dialect, seqs=[])


def test_a_group_is_repeated_for_each_row(dialect: Dialect) -> None:
    add = SQL("INSERT INTO {items} VALUES [rows: (:tenant, :number, NOW(), :content, '$[0]')] AS fresh WHERE a = :name")
    rows = [Item(1, b"x"), Item(2, b"y")]
    statement = add(dialect, Key("a", b"n"), rows=rows)
    assert statement.sql == (
        "INSERT INTO `p_items` VALUES (%s, %s, NOW(), %s, '$[0]'), (%s, %s, NOW(), %s, '$[0]') AS fresh WHERE a = %s"
    )
    assert statement.params == ("a", 1, b"x", "a", 2, b"y", b"n")
    only = SQL("INSERT INTO {items} VALUES [rows: ROW(:content, :number)]")(dialect, rows=rows)
    assert only.sql == "INSERT INTO `p_items` VALUES ROW(%s, %s), ROW(%s, %s)"
    assert only.params == (b"x", 1, b"y", 2)


def test_a_missing_parameter_is_an_error(dialect: Dialect) -> None:
    with pytest.raises(KeyError, match="after"):
        SQL("DELETE FROM {items} WHERE seq > :after")(dialect)


def test_a_colon_in_a_literal_of_a_time_is_no_parameter(dialect: Dialect) -> None:
    statement = SQL("UPDATE {items} SET at = '1970-01-01 00:00:00' WHERE seq = :seq")(dialect, seq=1)
    assert statement.params == (1,)


def test_pieces_of_a_call(dialect: Dialect) -> None:
    read = Select("SELECT 1 FROM {items} t WHERE {KEY}{more}", Row)
    assert read(dialect, Key("a", b"n"), pieces={"more": " AND t.seq > :after"}, after=3).params == ("a", b"n", 3)
    assert read(dialect, Key("a", b"n"), pieces={"more": ""}).params == ("a", b"n")
    with pytest.raises(ValueError, match="shared"):
        read(dialect, Key("a", b"n"), pieces={"more": "", "KEY": ""})


def test_another_engine_has_its_own_text_and_order_of_parameters(dialect: Dialect) -> None:
    put = SQL(
        "UPDATE {items} SET a = :first WHERE b IN (:seqs) AND {KEY}",
        oceanbase="UPDATE {items} o SET a = 1 WHERE {KEY} AND b IN (:seqs) AND c = :first",
    )
    statement = put(dialect, Key("a", b"n"), first="f", seqs=[7, 8])
    assert statement.params == ("f", 7, 8, "a", b"n")
    translated = OCEANBASE.statement(statement)
    assert translated.sql == (
        "UPDATE `p_items` o SET a = 1 WHERE t.tenant = %s AND t.name = %s AND b IN (%s, %s) AND c = %s"
    )
    assert translated.params == ("a", b"n", 7, 8, "f")


def test_texts_are_cached_up_to_a_number_and_a_length(dialect: Dialect) -> None:
    read = SQL("\nSELECT 1 FROM {items}{more}\n")
    first = read(dialect, pieces={"more": " WHERE a"}).sql
    assert first == "SELECT 1 FROM `p_items` WHERE a"
    assert read(dialect, pieces={"more": " WHERE a"}).sql is first
    for number in range(2 * TEXTS_LIMIT):
        assert read(dialect, pieces={"more": f" t{number}"}).sql.endswith(f" t{number}")
        assert len(dialect.compiled) <= TEXTS_LIMIT
    remembered = len(dialect.compiled)
    assert read(dialect, pieces={"more": "x" * TEXT_LIMIT_CHARACTERS}).sql
    assert len(dialect.compiled) == remembered


def test_placeholders_are_filled_recursively() -> None:
    pieces = {"t": "`p_t`", "OF.x": "x.a = {t}.a  \n"}
    assert (
        fill("SELECT {t}.b FROM {t} WHERE {OF.x} AND b", pieces)
        == "SELECT `p_t`.b FROM `p_t` WHERE x.a = `p_t`.a AND b"
    )


def test_braces_that_hold_no_name_stay() -> None:
    assert fill("REGEXP '^[0-9]{1,19}$'", {}) == "REGEXP '^[0-9]{1,19}$'"


def test_a_placeholder_without_a_piece_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill("{nothing}", {})
