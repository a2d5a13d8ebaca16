"""Making or checking the tables before the first operation, as an operation itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..config import MySQLConfig
from ..dialect import Statement
from ..dialect.tables import LAYOUT_COMMENT
from ..errors import SchemaMismatch
from .operation import Batch, Operation


class TableFamily(Protocol):
    """The tables of one family of stores."""

    @property
    def names(self) -> Mapping[str, str]:
        """Their unquoted names by their roles."""

    @property
    def layout_version(self) -> int:
        """The layout that this version of the package uses."""

    @property
    def comment(self) -> str:
        """What the comment of each table is: the layout, and what is kept in them."""

    def describe(self) -> Statement:
        """Name, comment and presence of a full-text index of each table there is."""

    def create(self) -> tuple[Statement, ...]:
        """Make the tables that are missing."""

    def refusal(self, searched: Mapping[str, bool]) -> str | None:
        """Why tables of the right layout cannot be used; None if they can.

        Args:
            searched: Names of the tables in lower case, each with whether it has a full-text index.
        """


class HasTables(Protocol):
    """The statements of one family."""

    @property
    def schema(self) -> TableFamily:
        """Those that make and check its tables."""


def ensure_schema(config: MySQLConfig, dialect: HasTables) -> Operation[None]:
    """See that the tables are there and ours; make those that are missing if the configuration allows it.

    Raises:
        SchemaMismatch: A table is missing, foreign, of another layout, or lacks the full-text index.
    """
    if config.ddl_mode == "off":
        return
    schema = dialect.schema
    (found,) = yield Batch.of(schema.describe())
    tables = {str(name).casefold(): (str(comment), bool(indexed)) for name, comment, indexed in found.rows}
    names = tuple(schema.names.values())
    for name in names:
        if name.casefold() in tables:
            _check_layout(config, schema, name, tables[name.casefold()][0])
    missing = [name for name in names if name.casefold() not in tables]
    if not missing:
        refusal = schema.refusal({name: indexed for name, (_, indexed) in tables.items()})
        if refusal is not None:
            raise SchemaMismatch(refusal)
        return
    if config.ddl_mode == "validate":
        raise no_tables(config, missing)
    for statement in schema.create():
        yield Batch.of(statement)


def has_tables(dialect: HasTables) -> Operation[bool]:
    """Whether any of the tables is there."""
    (found,) = yield Batch.of(dialect.schema.describe())
    return bool(found.rows)


def no_tables(config: MySQLConfig, missing: Sequence[str]) -> SchemaMismatch:
    """The error of one who may not make the tables that are missing."""
    return SchemaMismatch(
        f"Database {config.database!r} has no table {' and no '.join(map(repr, missing))}. Make the tables with "
        "the output of `python -m locus_mysql schema`, or set ddl_mode='create'."
    )


def _check_layout(config: MySQLConfig, schema: TableFamily, table: str, comment: str) -> None:
    if comment == schema.comment:
        return
    version, _, kind = comment.removeprefix(LAYOUT_COMMENT).partition(", ")
    if not comment.startswith(LAYOUT_COMMENT) or not version.isdecimal():
        raise SchemaMismatch(
            f"Table {table!r} in database {config.database!r} was not made by locus-mysql. Choose another "
            "table_prefix or database; nothing was changed."
        )
    if int(version) != schema.layout_version:
        action = (
            "Upgrade locus-mysql" if int(version) > schema.layout_version else "Migrate the tables (see CHANGELOG.md)"
        )
        raise SchemaMismatch(
            f"Table {table!r} has layout {version}, this version of locus-mysql uses layout {schema.layout_version}. "
            f"{action}."
        )
    raise SchemaMismatch(
        f"Table {table!r} in database {config.database!r} holds states of another kind ({kind or 'none named'}). "
        "Choose another table_prefix; nothing was changed."
    )
