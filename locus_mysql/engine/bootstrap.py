"""Making or checking the tables of a family before its first operation, as an operation itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from ..config import ConnectionOptions
from ..dialect.schema import LAYOUT_COMMENT, Schema
from ..errors import SchemaMismatch
from .operation import Batch, Operation

DDLMode: TypeAlias = Literal["create", "validate", "off"]


def ensure_schema(config: ConnectionOptions, schema: Schema, ddl_mode: DDLMode) -> Operation[None]:
    """Make sure that the tables are there and are ours; make those that are missing if that is allowed.

    Args:
        config: Its name of the database stands in messages.
        schema: The tables.
        ddl_mode: ``create`` makes missing tables, ``validate`` only checks, ``off`` does neither.

    Raises:
        SchemaMismatch: A table is missing, foreign, of another layout or family, or lacks an index or a column.
    """
    if ddl_mode == "off":
        return
    (found,) = yield Batch.of(schema.describe())
    there = {str(name).casefold(): (str(comment), str(indexes or "")) for name, comment, indexes in found.rows}
    for name in schema.names:
        if name.casefold() in there:
            _check_comment(config, schema, name, there[name.casefold()][0])
    missing = [name for name in schema.names if name.casefold() not in there]
    if not missing:
        for needed in schema.needed:
            if needed.index not in there[needed.table.casefold()][1].split(","):
                raise SchemaMismatch(f"Table {needed.table!r} was made without index {needed.index!r}. {needed.advice}")
    elif ddl_mode == "validate":
        raise no_tables(config, schema, missing)
    else:
        for statement in schema.create():
            yield Batch.of(statement)
    if schema.columns:
        yield from _check_columns(schema)


def _check_columns(schema: Schema) -> Operation[None]:
    """Also of tables just made: another process, that needs other columns, may have been faster."""
    (found,) = yield Batch.of(schema.describe_columns())
    there = {(str(table).casefold(), str(column).casefold()) for table, column, _ in found.rows}
    for needed in schema.columns:
        if (needed.table.casefold(), needed.column.casefold()) not in there:
            raise SchemaMismatch(f"Table {needed.table!r} has no column {needed.column!r}. {needed.advice}")


def has_tables(schema: Schema) -> Operation[bool]:
    """Whether any of the tables is there."""
    (found,) = yield Batch.of(schema.describe())
    return bool(found.rows)


def has_own_tables(schema: Schema) -> Operation[bool]:
    """Whether any of the tables is there and is ours; for names that others give their tables too."""
    (found,) = yield Batch.of(schema.describe())
    return any(str(comment) == schema.comment for _, comment, _ in found.rows)


def no_tables(config: ConnectionOptions, schema: Schema, missing: Sequence[str]) -> SchemaMismatch:
    """The error to raise where tables are missing that may not be made."""
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
