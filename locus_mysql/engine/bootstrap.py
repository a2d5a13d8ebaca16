"""Making or checking the tables before the first operation, as an operation itself."""

from __future__ import annotations

from collections.abc import Sequence

from ..config import MySQLConfig
from ..dialect import Dialect
from ..dialect.checkpoints.tables import LAYOUT_COMMENT, LAYOUT_VERSION, SchemaStatements
from ..errors import SchemaMismatch
from .operation import Batch, Operation


def ensure_schema(config: MySQLConfig, dialect: Dialect) -> Operation[None]:
    """See that the tables are there and ours; make those that are missing if the configuration allows it.

    Raises:
        SchemaMismatch: A table is missing, foreign, of another layout, or lacks the full-text index.
    """
    if config.ddl_mode == "off":
        return
    (found,) = yield Batch.of(dialect.schema.describe())
    tables = {str(name).casefold(): (str(comment), bool(indexed)) for name, comment, indexed in found.rows}
    names = tuple(dialect.schema.names.values())
    searched = dialect.schema.names["checkpoints"]
    for name in names:
        if name.casefold() in tables:
            _check_layout(config, dialect.schema, name, tables[name.casefold()][0])
    missing = [name for name in names if name.casefold() not in tables]
    if not missing:
        if config.search and not tables[searched.casefold()][1]:
            raise SchemaMismatch(
                f"Table {searched!r} was made without a full-text index. Set search=False, or "
                f"add the index: {dialect.schema.add_search().sql}"
            )
        return
    if config.ddl_mode == "validate":
        raise no_tables(config, missing)
    for statement in dialect.schema.create():
        yield Batch.of(statement)


def has_tables(dialect: Dialect) -> Operation[bool]:
    """Whether any of the tables is there."""
    (found,) = yield Batch.of(dialect.schema.describe())
    return bool(found.rows)


def no_tables(config: MySQLConfig, missing: Sequence[str]) -> SchemaMismatch:
    """The error of one who may not make the tables that are missing."""
    return SchemaMismatch(
        f"Database {config.database!r} has no table {' and no '.join(map(repr, missing))}. Make the tables with "
        "the output of `python -m locus_mysql schema`, or set ddl_mode='create'."
    )


def _check_layout(config: MySQLConfig, schema: SchemaStatements, table: str, comment: str) -> None:
    if comment == schema.comment:
        return
    version, _, kind = comment.removeprefix(LAYOUT_COMMENT).partition(", ")
    if not comment.startswith(LAYOUT_COMMENT) or not version.isdecimal():
        raise SchemaMismatch(
            f"Table {table!r} in database {config.database!r} was not made by locus-mysql. Choose another "
            "table_prefix or database; nothing was changed."
        )
    if int(version) != LAYOUT_VERSION:
        action = "Upgrade locus-mysql" if int(version) > LAYOUT_VERSION else "Migrate the tables (see CHANGELOG.md)"
        raise SchemaMismatch(
            f"Table {table!r} has layout {version}, this version of locus-mysql uses layout {LAYOUT_VERSION}. {action}."
        )
    raise SchemaMismatch(
        f"Table {table!r} in database {config.database!r} holds states of another kind ({kind or 'none named'}). "
        "Choose another table_prefix; nothing was changed."
    )
