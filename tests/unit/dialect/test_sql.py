"""`SQL` and `Select`: named parameters, lists, rows, pieces, and another engine's order of parameters."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from locus_mysql.dialect.schema import Schema
from locus_mysql.dialect.sql import SQL, Dialect
from locus_mysql.dialect.statement import TEXT_LIMIT_CHARACTERS, TEXTS_LIMIT
from locus_mysql.dialect.variants import OCEANBASE


class Key(NamedTuple):
    tenant: str
    name: bytes


@pytest.fixture
def dialect() -> Dialect:
    return Dialect(Schema("transcripts", 1, ()), {"items": "p_items"}, {"KEY": "t.tenant = :tenant AND t.name = :name"})


def test_an_empty_list_is_refused(dialect: Dialect) -> None:
    with pytest.raises(ValueError, match="'seqs'"):
        SQL("DELETE FROM {items} WHERE seq IN (:seqs)")(dialect, seqs=[])


def test_a_colon_in_a_literal_of_a_time_is_no_parameter(dialect: Dialect) -> None:
    statement = SQL("UPDATE {items} SET at = '1970-01-01 00:00:00' WHERE seq = :seq")(dialect, seq=1)
    assert statement.params == (1,)


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
