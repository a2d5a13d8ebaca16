"""Making or checking the tables before the first operation, as an operation itself."""

from __future__ import annotations

from ..config import MySQLConfig
from ..dialect import Dialect
from ..dialect.schema import LAYOUT_COMMENT, LAYOUT_VERSION
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
    tables = {str(name).casefold(): (str(comment), bool(searched)) for name, comment, searched in found.rows}
    names = (dialect.threads_table, dialect.checkpoints_table)
    for name in names:
        if name.casefold() in tables:
            _check_layout(config, name, tables[name.casefold()][0])
    missing = [name for name in names if name.casefold() not in tables]
    if not missing:
        if config.search and not tables[dialect.checkpoints_table.casefold()][1]:
            raise SchemaMismatch(
                f"Table {dialect.checkpoints_table!r} was made without a full-text index. Set search=False, or "
                f"add the index: {dialect.schema.add_search().sql}"
            )
        return
    if config.ddl_mode == "validate":
        raise SchemaMismatch(
            f"Database {config.database!r} has no table {' and no '.join(map(repr, missing))}. Make the tables with "
            "the output of `python -m locus_mysql schema`, or set ddl_mode='create'."
        )
    for statement in dialect.schema.create():
        yield Batch.of(statement)


def _check_layout(config: MySQLConfig, table: str, comment: str) -> None:
    version = comment.removeprefix(LAYOUT_COMMENT)
    if version == comment or not version.isdecimal():
        raise SchemaMismatch(
            f"Table {table!r} in database {config.database!r} was not made by locus-mysql. Choose another "
            "table_prefix or database; nothing was changed."
        )
    if int(version) != LAYOUT_VERSION:
        action = "Upgrade locus-mysql" if int(version) > LAYOUT_VERSION else "Migrate the tables (see CHANGELOG.md)"
        raise SchemaMismatch(
            f"Table {table!r} has layout {version}, this version of locus-mysql uses layout {LAYOUT_VERSION}. {action}."
        )
