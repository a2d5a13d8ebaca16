"""Making or checking the tables before the first operation, as an operation itself."""

from __future__ import annotations

from ..config import MySQLConfig
from ..dialect.schema import LAYOUT_COMMENT, Schema
from ..engine.operation import Batch, Operation
from ..errors import SchemaMismatch


def ensure_tables(config: MySQLConfig, schema: Schema) -> Operation[None]:
    """See that the tables are there and ours; make those that are missing if the configuration allows it.

    Raises:
        SchemaMismatch: A table is missing, foreign, of another layout or family, or lacks an index.
    """
    if config.ddl_mode == "off":
        return
    (found,) = yield Batch.of(schema.describe())
    there = {str(name).casefold(): (str(comment), str(indexes or "")) for name, comment, indexes in found.rows}
    for name in schema.names:
        if name.casefold() in there and there[name.casefold()][0] != schema.comment:
            raise _mismatch(config, schema, name, there[name.casefold()][0])
    missing = [name for name in schema.names if name.casefold() not in there]
    if not missing:
        for needed in schema.needed:
            if needed.index not in there[needed.table.casefold()][1].split(","):
                raise SchemaMismatch(f"Table {needed.table!r} was made without index {needed.index!r}. {needed.advice}")
        return
    if config.ddl_mode == "validate":
        raise SchemaMismatch(
            f"Database {config.database!r} has no table {' and no '.join(map(repr, missing))}. Set ddl_mode='create'."
        )
    for statement in schema.create():
        yield Batch.of(statement)


def _mismatch(config: MySQLConfig, schema: Schema, table: str, comment: str) -> SchemaMismatch:
    where = f"Table {table!r} in database {config.database!r}"
    version, _, family = comment.removeprefix(LAYOUT_COMMENT).partition(", ")
    if not comment.startswith(LAYOUT_COMMENT) or not version.isdecimal():
        return SchemaMismatch(f"{where} was not made by locus-mysql. Choose another table_prefix; nothing was changed.")
    if int(version) != schema.layout_version:
        return SchemaMismatch(
            f"{where} has layout {version}; this version uses {schema.layout_version}. See CHANGELOG.md."
        )
    return SchemaMismatch(f"{where} is of another family ({family}). Choose another table_prefix; nothing was changed.")
