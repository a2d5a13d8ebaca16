"""Creation and validation of tables, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.schema import NeededColumn, NeededIndex, Schema, Table
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.bootstrap import DDLMode, ensure_schema
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
