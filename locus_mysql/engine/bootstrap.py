"""Creating or checking the tables of a family before its first operation, as an operation itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from ..config import ConnectionOptions
from ..dialect.schema import LAYOUT_COMMENT, Schema
from ..errors import SchemaMismatch
from .operation import Batch, Operation, fetch

DDLMode: TypeAlias = Literal["create", "validate", "off"]


def ensure_schema(config: ConnectionOptions, schema: Schema, ddl_mode: DDLMode) -> Operation[None]:
    """Check that the tables exist and were created by this package; create missing ones if that is allowed.

    Args:
        config: The options, with the name of the database for messages.
        schema: The tables.
        ddl_mode: ``create`` creates missing tables, ``validate`` only checks, ``off`` does neither.

    Raises:
        SchemaMismatch: A table is missing, foreign, of another layout or family, or lacks an index or a column.
    """
    if ddl_mode == "off":
        return
    existing = {table.name.casefold(): table for table in (yield from fetch(schema.describe()))}
    for name in schema.names:
        if name.casefold() in existing:
            _check_comment(config, schema, name, existing[name.casefold()].comment or "")
    missing = [name for name in schema.names if name.casefold() not in existing]
    if not missing:
        for needed in schema.needed:
            if needed.index not in (existing[needed.table.casefold()].indexes or "").split(","):
                raise SchemaMismatch(f"Table {needed.table!r} was made without index {needed.index!r}. {needed.advice}")
    elif ddl_mode == "validate":
        raise no_tables(config, schema, missing)
    else:
        for statement in schema.create():
            yield Batch.of(statement)
    if schema.columns:
        yield from _check_columns(schema)


def _check_columns(schema: Schema) -> Operation[None]:
    """Check new tables too: another process, which needs other columns, may have created them first."""
    columns = yield from fetch(schema.describe_columns())
    existing = {(column.table.casefold(), column.name.casefold()) for column in columns}
    for needed in schema.columns:
        if (needed.table.casefold(), needed.column.casefold()) not in existing:
            raise SchemaMismatch(f"Table {needed.table!r} has no column {needed.column!r}. {needed.advice}")


def has_tables(schema: Schema) -> Operation[bool]:
    """Check whether any of the tables exists."""
    return bool((yield from fetch(schema.describe())))


def has_own_tables(schema: Schema) -> Operation[bool]:
    """Check whether any of the tables exists and was created by this package; for names that other programs use too."""
    tables = yield from fetch(schema.describe())
    return any(table.comment == schema.comment for table in tables)


def no_tables(config: ConnectionOptions, schema: Schema, missing: Sequence[str]) -> SchemaMismatch:
    """Return the error for missing tables that may not be created."""
    return SchemaMismatch(
        f"Database {config.database!r} has no table {' and no '.join(map(repr, missing))}. If nothing was saved with "
        f"another table_prefix, make the tables with the output of `python -m locus_mysql {schema.command}`, or set "
        "ddl_mode='create'."
    )


def _check_comment(config: ConnectionOptions, schema: Schema, table: str, comment: str) -> None:
    if comment == schema.comment:
        return
    version, _, family = comment.removeprefix(LAYOUT_COMMENT).partition(", ")
    if not comment.startswith(LAYOUT_COMMENT) or not version.isdecimal():
        raise SchemaMismatch(
            f"Table {table!r} in database {config.database!r} was not made by locus-mysql. Choose another "
            "table_prefix or database; nothing was changed."
        )
    if int(version) != schema.layout_version:
        newer = int(version) > schema.layout_version
        action = "Upgrade locus-mysql" if newer else "Migrate the tables (see CHANGELOG.md)"
        raise SchemaMismatch(
            f"Table {table!r} has layout {version}, this version of locus-mysql uses layout {schema.layout_version}. "
            f"{action}."
        )
    raise SchemaMismatch(
        f"Table {table!r} in database {config.database!r} holds states of another kind ({family or 'none named'}). "
        "Choose another table_prefix; nothing was changed."
    )
