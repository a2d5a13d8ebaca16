"""Making or checking the tables before the first operation, as an operation itself."""

from __future__ import annotations

from typing import Protocol

from ..config import MySQLConfig
from ..dialect import Statement
from ..dialect.schema import LAYOUT_COMMENT
from ..errors import SchemaMismatch
from .operation import Batch, Operation


class TableFamily(Protocol):
    """The tables of one family of stores."""

    @property
    def names(self) -> tuple[str, ...]:
        """Their unquoted names."""

    @property
    def layout_version(self) -> int:
        """The layout that this version of the package uses."""

    def describe(self) -> Statement:
        """Name, comment and presence of a full-text index of each table there is."""

    def create(self) -> tuple[Statement, ...]:
        """Make the tables that are missing."""

    def refusal(self, searched: dict[str, bool]) -> str | None:
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
    tables = {str(name).casefold(): (str(comment), bool(searched)) for name, comment, searched in found.rows}
    for name in schema.names:
        if name.casefold() in tables:
            _check_layout(config, name, tables[name.casefold()][0], schema.layout_version)
    missing = [name for name in schema.names if name.casefold() not in tables]
    if not missing:
        refusal = schema.refusal({name: searched for name, (_, searched) in tables.items()})
        if refusal is not None:
            raise SchemaMismatch(refusal)
        return
    if config.ddl_mode == "validate":
        raise SchemaMismatch(
            f"Database {config.database!r} has no table {' and no '.join(map(repr, missing))}. Make the tables with "
            "the output of `python -m locus_mysql schema`, or set ddl_mode='create'."
        )
    for statement in schema.create():
        yield Batch.of(statement)


def _check_layout(config: MySQLConfig, table: str, comment: str, layout_version: int) -> None:
    version = comment.removeprefix(LAYOUT_COMMENT)
    if version == comment or not version.isdecimal():
        raise SchemaMismatch(
            f"Table {table!r} in database {config.database!r} was not made by locus-mysql. Choose another "
            "table_prefix or database; nothing was changed."
        )
    if int(version) != layout_version:
        action = "Upgrade locus-mysql" if int(version) > layout_version else "Migrate the tables (see CHANGELOG.md)"
        raise SchemaMismatch(
            f"Table {table!r} has layout {version}, this version of locus-mysql uses layout {layout_version}. {action}."
        )
