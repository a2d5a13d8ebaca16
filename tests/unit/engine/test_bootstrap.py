"""Creation and validation of tables, without a server."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.schema import NeededColumn, NeededIndex, Schema, Table
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.bootstrap import DDLMode, ensure_schema, has_tables
from locus_mysql.engine.operation import Results
from locus_mysql.errors import NewerLayout, OlderLayout, SchemaMismatch

CONFIG = MySQLConfig(database="app")
PLAIN = Schema("agents", 3, (Table("One", "(a INT)"), Table("two", "(b INT)")))
NEEDY = Schema(
    "agents",
    3,
    PLAIN.tables,
    (NeededIndex("two", "words", "Make it."),),
    (NeededColumn("One", "Vector", "Add it."),),
)
OURS = "locus-mysql: agents layout 3"


def run(schema: Schema, mode: DDLMode, *answers: list[tuple[Any, ...]]) -> list[str]:
    """Answer the statements with these rows; return the verbs of the sent statements."""
    operation, left, sent = ensure_schema(CONFIG, schema, mode), list(answers), []
    results: Any = None
    try:
        while True:
            batch = operation.send(results)
            sent += [statement.sql.split("(")[0].strip() for statement in batch.statements]
            results = Results([Result(answer(one.sql, left)) for one in batch.statements], batch)
    except StopIteration:
        assert not left
        return [" ".join(one.split()[:1]) if not one.startswith("CREATE") else one for one in sent]


def answer(sql: str, left: list[list[tuple[Any, ...]]]) -> tuple[Any, ...]:
    """Return the next rows; and the described structure of `NEEDY` to queries that compare it."""
    if sql.startswith("CREATE"):
        return ()
    if "VERSION()" in sql:
        return (("9.7.0",),)
    if "NON_UNIQUE" in sql:
        return ()
    if "IS_NULLABLE" in sql:
        return tuple((*row, "YES", None, "", None, "") for row in left.pop(0))
    return tuple(left.pop(0))


def there(comment: str = OURS, indexes: str | None = "PRIMARY,words") -> list[tuple[Any, ...]]:
    return [("one", comment, "PRIMARY"), ("TWO", comment, indexes)]


COLUMNS = [("one", "a", "int"), ("ONE", "VECTOR", "blob"), ("two", "b", "int")]
MAKES = ["CREATE TABLE IF NOT EXISTS `One`", "CREATE TABLE IF NOT EXISTS `two`"]


def test_the_comment_is_that_of_the_tables() -> None:
    assert PLAIN.comment == OURS
    assert set(get_args(DDLMode)) == {"create", "validate", "off"}


def test_no_statement_is_sent_where_others_manage_the_tables() -> None:
    assert run(NEEDY, "off") == []


def test_existing_tables_are_only_checked() -> None:
    assert run(PLAIN, "create", there(indexes=None)) == ["SELECT"]
    assert run(NEEDY, "create", there(), COLUMNS) == ["SELECT", "SELECT"]
    assert run(NEEDY, "validate", there(), COLUMNS) == ["SELECT"] * 4
    with pytest.raises(SchemaMismatch, match=r"Column 'b' of table 'two' has type blob; it should be int\."):
        run(NEEDY, "validate", there(), [*COLUMNS[:2], ("two", "b", "blob")])


@pytest.mark.parametrize("found", [[], there()[:1], there()[1:]])
def test_missing_tables_are_created_if_the_mode_allows_it(found: list[tuple[Any, ...]]) -> None:
    assert run(PLAIN, "create", found) == ["SELECT", *MAKES]
    assert run(NEEDY, "create", found, COLUMNS) == ["SELECT", *MAKES, "SELECT"]
    with pytest.raises(SchemaMismatch, match="'app' has no table ") as caught:
        run(PLAIN, "validate", found, COLUMNS)
    assert ("'One'" in str(caught.value)) is (found != there()[:1])
    assert ("'two'" in str(caught.value)) is (found != there()[1:])


@pytest.mark.parametrize(
    ("comment", "kind", "words"),
    [
        ("", SchemaMismatch, "not made by locus-mysql"),
        ("somebody's layout 3, agents", SchemaMismatch, "not made by locus-mysql"),
        ("locus-mysql: agents layout x", SchemaMismatch, "not made by locus-mysql"),
        ("locus-mysql: agents layout 4", NewerLayout, "layout 4 of a newer version .* Upgrade locus-mysql"),
        ("locus-mysql: agents layout 5, usable from 4", NewerLayout, "layout 5 of a newer version"),
        ("locus-mysql: agents layout 2", OlderLayout, "layout 2 .* migrate --family agents"),
        ("locus-mysql: dicts layout 3", SchemaMismatch, "another kind, dicts"),
    ],
)
@pytest.mark.parametrize("mode", ["create", "validate"])
def test_tables_with_another_comment_are_left_alone(
    mode: DDLMode, comment: str, kind: type[SchemaMismatch], words: str
) -> None:
    for found in (there(comment), there(comment)[:1], [there()[0], there(comment)[1]]):
        with pytest.raises(kind, match=words) as caught:
            run(NEEDY, mode, found, COLUMNS)
        assert type(caught.value) is kind


def test_tables_of_a_newer_version_that_can_still_be_used_are_used() -> None:
    assert run(PLAIN, "create", there("locus-mysql: agents layout 5, usable from 3")) == ["SELECT"]


def test_the_error_of_a_missing_index_or_column_has_advice() -> None:
    for indexes in ("PRIMARY", "", None, "words_2"):
        with pytest.raises(SchemaMismatch, match=r"'two' was made without index 'words'\. Make it\."):
            run(NEEDY, "create", there(indexes=indexes))
    for columns in ([], [("one", "a", "int")], [("two", "vector", "blob")]):
        with pytest.raises(SchemaMismatch, match=r"'One' has no column 'Vector'\. Add it\."):
            run(NEEDY, "create", there(), columns)
        with pytest.raises(SchemaMismatch, match="'Vector'"):  # a process that needs none may have made the table
            run(NEEDY, "create", [], columns)


@pytest.mark.parametrize(("rows", "found"), [((), False), ((("One", OURS, ""),), True)])
def test_existing_tables_are_detected(rows: Any, found: bool) -> None:
    operation = has_tables(PLAIN)
    batch = next(operation)
    with pytest.raises(StopIteration) as ended:
        operation.send(Results([Result(rows)], batch))
    assert ended.value.value is found
