"""Tables in partitions, for engines that spread partitions over servers: `partitioned`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .schema import Schema
from .statement import Statement
from .variants import FamilyRefused, Variant

#: The maximum number of partitions of a table in OceanBase.
MAX_PARTITIONS = 8192

#: Possible partitioning keys: the columns that identify a thread, a session, a namespace or a conversation. Every
#: statement about one of these has a condition on all of its columns, and so reads one partition. A ledger is
#: partitioned by its tokens.
KEYS = (
    ("tenant", "thread_id"),
    ("tenant", "session_id"),
    ("tenant", "sid"),
    ("tenant", "path"),
    ("tenant", "kind", "collection", "name"),
    ("owner",),
    ("tenant", "token"),
)

_UNIQUE = re.compile(r"(?:PRIMARY KEY|UNIQUE KEY \w+) \(([^()]*)\)")


class CannotPartition(Exception):
    """A table's keys do not all have the columns of one of `KEYS`."""


def partitioned(schema: Schema, variant: Variant, partitions: int | None) -> tuple[Statement, ...]:
    """Return the statements that create a family's tables on an engine, in partitions if a number is given.

    Args:
        schema: The tables.
        variant: The engine's variant of the dialect.
        partitions: The number of partitions of each table, 2 to `MAX_PARTITIONS`; None for tables without.

    Raises:
        FamilyRefused: The engine does not support the family.
        CannotPartition: The primary key and the unique keys of a table have no columns in common that fit.
    """
    if schema.family not in variant.families:
        raise FamilyRefused(variant.name, schema.family)
    statements = [variant.statement(statement) for statement in schema.create()]
    if partitions is None:
        return tuple(statements)
    return tuple(
        Statement(
            f"{statement.sql}\n  PARTITION BY KEY ({', '.join(_key(statement.sql, name))}) PARTITIONS {partitions}"
        )
        for name, statement in zip(schema.names, statements, strict=True)
    )


def _key(text: str, table: str) -> Sequence[str]:
    """Return the columns that a table is partitioned by. Each unique key must include them."""
    unique = [{column.strip() for column in columns.split(",")} for columns in _UNIQUE.findall(text)]
    for key in KEYS:
        if unique and all(columns.issuperset(key) for columns in unique):
            return key
    raise CannotPartition(
        f"Table `{table}` cannot be partitioned: not all of its unique keys have a thread, a session or a namespace. "
        "Create the tables of this family without --partitions."
    )
