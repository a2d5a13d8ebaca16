"""Creation and validation of tables, without a server."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.schema import NeededColumn, NeededIndex, Schema, Table
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.bootstrap import DDLMode, ensure_schema, has_tables
from locus_mysql.engine.operation import Results
from locus_mysql.errors import SchemaMismatch

CONFIG = MySQLConfig(database="app")
PLAIN = Schema("agents", 3, (Table("One", "(a INT)"), Table("two", "(b INT)")))
NEEDY = Schema(
    "agents",
    3,
    PLAIN.tables,
    (NeededIndex("two", "words", "Make it."),),
    (NeededColumn("One", "Vector", "Add it."),),
)
OURS = "locus-mysql layout 3, agents"


def run(schema: Schema, mode: DDLMode, *answers: list[tuple[Any, ...]]) -> list[str]:
    """Answer the statements with these rows; return the verbs of the sent statements."""
    operation, left, sent = ensure_schema(CONFIG, schema, mode), list(answers), []
    results: Any = None
    try:
        while True:
            batch = operation.send(results)
            sent += [statement.sql.split("(")[0].strip() for statement in batch.statements]
            rows = tuple(left.pop(0)) if not sent[-1].startswith("CREATE") else ()
            results = Results([Result(rows)], batch)
    except StopIteration:
        assert not left
        return [" ".join(one.split()[:1]) if not one.startswith("CREATE") else one for one in sent]


def there(comment: str = OURS, indexes: str | None = "PRIMARY,words") -> list[tuple[Any, ...]]:
    return [("one", comment, "PRIMARY"), ("TWO", comment, indexes)]


COLUMNS = [("one", "a", "int"), ("ONE", "VECTOR", "blob"), ("two", "b", "int")]
MAKES = ["CREATE TABLE IF NOT EXISTS `One`", "CREATE TABLE IF NOT EXISTS `two`"]


def test_the_comment_is_that_of_the_tables() -> None:
    assert PLAIN.comment == OURS
    assert set(get_args(DDLMode)) == {"create", "validate", "off"}


def test_no_statement_is_sent_where_others_manage_the_tables() -> None:
    assert run(NEEDY, "off") == []


@pytest.mark.parametrize("mode", ["create", "validate"])
def test_existing_tables_are_only_checked(mode: DDLMode) -> None:
    assert run(PLAIN, mode, there(indexes=None)) == ["SELECT"]
    assert run(NEEDY, mode, there(), COLUMNS) == ["SELECT", "SELECT"]


@pytest.mark.parametrize("found", [[], there()[:1], there()[1:]])
def test_missing_tables_are_created_if_the_mode_allows_it(found: list[tuple[Any, ...]]) -> None:
    assert run(PLAIN, "create", found) == ["SELECT", *MAKES]
    assert run(NEEDY, "create", found, COLUMNS) == ["SELECT", *MAKES, "SELECT"]
    with pytest.raises(SchemaMismatch, match="'app' has no table ") as caught:
        run(PLAIN, "validate", found)
    assert ("'One'" in str(caught.value)) is (found != there()[:1])
    assert ("'two'" in str(caught.value)) is (found != there()[1:])


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("", "not made by locus-mysql"),
        ("somebody's layout 3, agents", "not made by locus-mysql"),
        ("3, agents", "not made by locus-mysql"),
        ("locus-mysql layout x, agents", "not made by locus-mysql"),
        ("locus-mysql layout 4, agents", "has layout 4, this version of locus-mysql uses layout 3. Upgrade"),
        ("locus-mysql layout 2, agents", "has layout 2, this version of locus-mysql uses layout 3. Migrate"),
        ("locus-mysql layout 3, dicts", "of another kind .dicts."),
        ("locus-mysql layout 3", "of another kind .none named."),
    ],
)
@pytest.mark.parametrize("mode", ["create", "validate"])
def test_tables_with_another_comment_are_left_alone(mode: DDLMode, comment: str, words: str) -> None:
    for found in (there(comment), there(comment)[:1], [there()[0], there(comment)[1]]):
        with pytest.raises(SchemaMismatch, match=words):
            run(NEEDY, mode, found)


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
