"""Creating or checking the tables of a family before its first operation, as an operation itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ..config import ConnectionOptions
from ..dialect.schema import ExistingTable, Schema, read_comment
from ..dialect.statement import Query
from ..dialect.structure import Differences, compare, describe_columns, describe_indexes, existing
from ..dialect.variants import variant_of
from ..errors import NewerLayout, OlderLayout, SchemaMismatch
from .operation import Batch, Operation, fetch


def check_layout(config: ConnectionOptions, schema: Schema, table: str, comment: str) -> None:
    """Check that a table is one of the family, in a layout that this version can use.

    Args:
        config: The options, with the name of the database for messages.
        schema: The tables of the family.
        table: The table's name.
        comment: Its comment.

    Raises:
        OlderLayout, NewerLayout: It belongs to another version.
        SchemaMismatch: It is not a table of this package, or belongs to another family.
    """
    if comment == schema.comment:
        return
    found = read_comment(comment)
    if found is None:
        raise SchemaMismatch(
            f"Table {table!r} in database {config.database!r} was not made by locus-mysql. Choose another "
            "table_prefix or database; nothing was changed."
        )
    if found.family != schema.family:
        raise SchemaMismatch(
            f"Table {table!r} in database {config.database!r} holds data of another kind, {found.family}, not "
            f"{schema.family}. Choose another table_prefix; nothing was changed."
        )
    if found.number < schema.layout_version:
        raise OlderLayout(
            f"Table {table!r} in database {config.database!r} has layout {found.number} of an older version of "
            f"locus-mysql; this version needs layout {schema.layout_version}. Run `python -m locus_mysql migrate "
            f"--family {schema.family}`, with --check first to see the steps; nothing was changed."
        )
    if found.usable_from > schema.layout_version:
        raise NewerLayout(
            f"Table {table!r} in database {config.database!r} has layout {found.number} of a newer version of "
            f"locus-mysql; this version, which knows layout {schema.layout_version}, is too old for it. Upgrade "
            "locus-mysql in this program; nothing was changed."
        )


def is_of_family(schema: Schema, comment: str) -> bool:
    """Return whether this package wrote the comment for a table of the family, in any version."""
    found = read_comment(comment)
    return found is not None and found.family == schema.family


DDLMode: TypeAlias = Literal["create", "validate", "off"]


class VersionRow(NamedTuple):
    """The version of the server."""

    version: str


VERSION = Query("SELECT VERSION()", row=VersionRow)


class Description(NamedTuple):
    """The existing tables of a family.

    Args:
        tables: By their names in small letters.
        columns: The names of tables and of their columns.
        differences: Their differences from what the family declares.
    """

    tables: Mapping[str, ExistingTable]
    columns: Collection[tuple[str, str]]
    differences: Differences


def ensure_schema(config: ConnectionOptions, schema: Schema, ddl_mode: DDLMode) -> Operation[None]:
    """Check that the tables exist and were created by this package; create missing ones if that is allowed.

    Args:
        config: The options, with the name of the database for messages.
        schema: The tables.
        ddl_mode: ``create`` creates missing tables, ``validate`` also compares columns and indexes and changes nothing,
            ``off`` does neither.

    Raises:
        OlderLayout, NewerLayout: The tables are those of another version.
        SchemaMismatch: A table is missing, foreign, of another family, or lacks an index or a column.
    """
    if ddl_mode == "off":
        return
    if ddl_mode == "validate":
        yield from _validate(config, schema)
        return
    tables = _by_name((yield from fetch(schema.describe())))
    check_layouts(config, schema, tables)
    if not missing_tables(schema, tables):
        _check_needed(schema, tables)
    else:
        for statement in schema.create():
            yield Batch.of(statement)
    if schema.columns:
        # New tables too: another process, which needs other columns, may have created them first.
        columns = yield from fetch(describe_columns(schema.names))
        _check_columns(schema, {(column.table.casefold(), column.name.casefold()) for column in columns})


def describe(schema: Schema) -> Operation[Description]:
    """Return the existing tables of a family, and how they differ from what it declares. One round trip."""
    tables, columns, indexes = schema.describe(), describe_columns(schema.names), describe_indexes(schema.names)
    results = yield Batch((tables, columns, indexes, VERSION), atomic=False)
    variant = variant_of(results.rows(VERSION)[0].version)
    found = existing(results.rows(columns), results.rows(indexes))
    names = {(table, column) for table, structure in found.items() for column in structure.columns}
    return Description(_by_name(results.rows(tables)), names, compare(schema, found, variant))


def _validate(config: ConnectionOptions, schema: Schema) -> Operation[None]:
    tables, columns, differences = yield from describe(schema)
    check_layouts(config, schema, tables)
    if missing := missing_tables(schema, tables):
        raise no_tables(config, schema, missing)
    _check_needed(schema, tables)
    _check_columns(schema, columns)
    if differences.wrong:
        raise SchemaMismatch(
            f"Tables in database {config.database!r} are not as locus-mysql made them. {' '.join(differences.wrong)} "
            f"Compare them with the output of `python -m locus_mysql {schema.command}`."
        )


def check_layouts(config: ConnectionOptions, schema: Schema, tables: Mapping[str, ExistingTable]) -> None:
    """Check the comments of the existing tables.

    Raises:
        SchemaMismatch: One is not a table of this family in this version's layout.
    """
    for name in schema.names:
        if name.casefold() in tables:
            check_layout(config, schema, name, tables[name.casefold()].comment or "")


def find_other_layout(config: ConnectionOptions, schema: Schema) -> Operation[None]:
    """Check only whether the tables are those of another version, after an operation has failed.

    Raises:
        OlderLayout, NewerLayout: They are.
    """
    tables = _by_name((yield from fetch(schema.describe())))
    try:
        check_layouts(config, schema, tables)
    except (OlderLayout, NewerLayout):
        raise
    except SchemaMismatch:
        return


def missing_tables(schema: Schema, tables: Mapping[str, ExistingTable]) -> list[str]:
    """Return the names of the tables that do not exist."""
    return [name for name in schema.names if name.casefold() not in tables]


def _by_name(tables: Sequence[ExistingTable]) -> dict[str, ExistingTable]:
    return {table.name.casefold(): table for table in tables}


def _check_needed(schema: Schema, tables: Mapping[str, ExistingTable]) -> None:
    for needed in schema.needed:
        indexes = (tables[needed.table.casefold()].indexes or "").split(",")
        if needed.index not in indexes and needed.other and needed.other in indexes:
            raise SchemaMismatch(
                f"Table {needed.table!r} was made with index {needed.other!r} instead of {needed.index!r}. "
                f"{needed.other_advice}"
            )
        if needed.index not in indexes:
            raise SchemaMismatch(f"Table {needed.table!r} was made without index {needed.index!r}. {needed.advice}")


def _check_columns(schema: Schema, columns: Collection[tuple[str, str]]) -> None:
    for needed in schema.columns:
        if (needed.table.casefold(), needed.column.casefold()) not in columns:
            raise SchemaMismatch(f"Table {needed.table!r} has no column {needed.column!r}. {needed.advice}")


def has_tables(schema: Schema) -> Operation[bool]:
    """Check whether any of the tables exists."""
    tables = _by_name((yield from fetch(schema.describe())))
    return len(missing_tables(schema, tables)) < len(schema.names)


def has_own_tables(schema: Schema) -> Operation[bool]:
    """Check whether any of the tables exists and was created by this package; for names that other programs use too."""
    tables = yield from fetch(schema.describe())
    return any(is_of_family(schema, table.comment or "") for table in tables)


def no_tables(config: ConnectionOptions, schema: Schema, missing: Sequence[str]) -> SchemaMismatch:
    """Return the error for missing tables that may not be created."""
    return SchemaMismatch(
        f"Database {config.database!r} has no table {' and no '.join(map(repr, missing))}. If nothing was saved with "
        f"another table_prefix, make the tables with the output of `python -m locus_mysql {schema.command}`, or set "
        "ddl_mode='create'."
    )
