"""What CREATE TABLE statements declare, what servers report of it, and the differences."""

from __future__ import annotations

import pytest

from locus_mysql.dialect.schema import Schema, Table
from locus_mysql.dialect.structure import Column, ColumnRow, Index, IndexRow, Structure, compare, declared, existing
from locus_mysql.dialect.variants import OCEANBASE
from tests.layouts.fingerprints import all_schemas

DEFINITION = """(
  name    VARCHAR(20)  NOT NULL,
  id      BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  broken  BOOLEAN      NULL DEFAULT 0,
  note    LONGTEXT     COLLATE utf8mb4_0900_ai_ci NULL,
  words   JSON         NULL,
  size    INT UNSIGNED AS (LENGTH(note)) STORED NOT NULL,
  PRIMARY KEY (name, id),
  UNIQUE KEY once (id),
  KEY pairs ((CAST(words AS UNSIGNED ARRAY)), name),
  KEY start (note(10)),
  FULLTEXT KEY found (note) WITH PARSER ngram,
  FOREIGN KEY (name) REFERENCES `other` (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"""
SCHEMA = Schema("toys", 1, (Table("Toys", DEFINITION),))
COLUMNS = [
    ColumnRow("toys", "name", "varchar(20)", "NO", "utf8mb4_0900_bin", "", None, ""),
    ColumnRow("toys", "id", "bigint(20) unsigned", "NO", None, "", None, "auto_increment"),
    ColumnRow("toys", "broken", "tinyint(1)", "YES", None, None, "0", ""),
    ColumnRow("toys", "note", "longtext", "YES", "utf8mb4_0900_ai_ci", "", None, ""),
    ColumnRow("toys", "words", "json", "YES", None, "", None, ""),
    ColumnRow("toys", "size", "int unsigned", "NO", None, "length(`note`)", None, "STORED GENERATED"),
]
INDEXES = [
    IndexRow("toys", "PRIMARY", 0, "name", None, None, "BTREE", "YES"),
    IndexRow("toys", "PRIMARY", 0, "id", None, None, "BTREE", "YES"),
    IndexRow("toys", "once", 0, "id", None, None, "BTREE", "YES"),
    IndexRow("toys", "pairs", 1, None, None, "cast(`words` as unsigned array)", "BTREE", "YES"),
    IndexRow("toys", "pairs", 1, "name", None, None, "BTREE", "YES"),
    IndexRow("toys", "start", 1, "note", 10, None, "BTREE", "YES"),
    IndexRow("toys", "found", 1, "note", None, None, "FULLTEXT", "YES"),
]


def differences(columns: list[ColumnRow], indexes: list[IndexRow]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return compare(SCHEMA, existing(columns, indexes), None)


def test_a_table_has_the_columns_and_indexes_of_its_statement() -> None:
    found = declared(SCHEMA.create()[0].sql)
    assert found.columns["note"] == Column("longtext", True, "utf8mb4_0900_ai_ci")
    assert found.columns["size"] == Column("int unsigned", False, None, "length(note)")
    assert found.indexes["pairs"] == Index(("cast(words as unsigned array)", "name"))
    assert found == existing(COLUMNS, INDEXES)["toys"]
    assert differences(COLUMNS, INDEXES) == ((), ())


def test_the_statements_of_all_families_are_understood() -> None:
    for schemas in all_schemas().values():
        for schema in schemas:
            for statement in schema.create():
                found = declared(statement.sql)
                assert isinstance(found, Structure)
                assert "primary" in found.indexes


@pytest.mark.parametrize(
    ("index", "changed", "sentence"),
    [
        (0, {"type": "varchar(10)"}, "Column 'name' of table 'Toys' has type varchar(10); it should be varchar(20)."),
        (0, {"collation": "utf8mb4_0900_ai_ci"}, "has collation utf8mb4_0900_ai_ci; it should be utf8mb4_0900_bin."),
        (2, {"nullable": "NO"}, "Column 'broken' of table 'Toys' may not be NULL; it should be NULL."),
        (1, {"nullable": "YES"}, "Column 'id' of table 'Toys' may be NULL; it should be NOT NULL."),
        (5, {"expression": "(length(`name`) + 1)"}, "generated as (length(name)+ 1); it should be generated as (len"),
        (5, {"expression": "", "default": "0"}, "is not generated; it should be generated as (length(note))."),
        (3, {"expression": "upper(`name`)"}, "is generated as (upper(name)); it should be an ordinary column."),
        (4, {"name": "wörds"}, "Table 'Toys' has no column 'words' (json)."),
    ],
)
def test_a_column_that_differs_is_described(index: int, changed: dict[str, str], sentence: str) -> None:
    columns = [*COLUMNS]
    columns[index] = columns[index]._replace(**changed)  # type: ignore[arg-type]
    (wrong,), extra = differences(columns, INDEXES)
    assert sentence in wrong
    assert len(extra) == ("name" in changed)


@pytest.mark.parametrize(
    ("indexes", "sentence"),
    [
        (INDEXES[2:], "Table 'Toys' has no index 'PRIMARY', unique, on (name, id)."),
        (INDEXES[:1] + INDEXES[2:], "Index 'PRIMARY' of table 'Toys' is unique, on (name); it should be unique, on ("),
        ([one._replace(non_unique=1) for one in INDEXES if one.name == "once"], "'once' of table 'Toys' is on (id);"),
        ([one._replace(kind="BTREE") for one in INDEXES if one.name == "found"], "it should be full text, on (note)."),
        ([one._replace(visible="NO") for one in INDEXES if one.name == "pairs"], "of table 'Toys' is invisible"),
        (
            [one._replace(expression="CAST(`words` AS SIGNED ARRAY)") for one in INDEXES if one.name == "pairs"],
            "signed",
        ),
    ],
)
def test_an_index_that_differs_is_described(indexes: list[IndexRow], sentence: str) -> None:
    wanted = {one.name for one in indexes}
    others = [] if len(indexes) > 2 else [one for one in INDEXES if one.name not in wanted]
    (wrong,), extra = differences(COLUMNS, [*others, *indexes])
    assert sentence in wrong
    assert extra == ()


def test_what_others_added_is_only_mentioned_unless_no_row_can_be_added() -> None:
    added = [ColumnRow("toys", "mine", "int", "YES", None, "", None, "")]
    index = [IndexRow("toys", "by_size", 0, "size", None, None, "BTREE", "YES")]
    wrong, extra = differences(COLUMNS + added, INDEXES + index)
    assert wrong == ()
    assert "column 'mine'" in extra[0]
    assert "index 'by_size', unique, on (size)" in extra[1]
    assert "refuses" in extra[1]
    (wrong_one,), _ = differences([*COLUMNS, added[0]._replace(nullable="NO")], INDEXES)
    assert "no row can be added" in wrong_one


def test_hidden_columns_of_indexes_of_oceanbase_are_no_difference() -> None:
    columns = [ColumnRow("toys", "note", "longtext", "YES", "utf8mb4_general_ci", None, None, "")]
    index = IndexRow("toys", "found", 1, "__word_segment_31", None, None, "FULLTEXT", "YES")
    definition = "(note LONGTEXT COLLATE utf8mb4_0900_ai_ci NULL, FULLTEXT KEY found (note)) COLLATE=utf8mb4_0900_bin"
    schema = Schema("dicts", 1, (Table("toys", definition),))
    assert compare(schema, existing(columns, [index]), OCEANBASE) == ((), ())
    (wrong,), _ = compare(schema, existing(columns, [index._replace(kind="BTREE")]), OCEANBASE)
    assert "it should be full text" in wrong
