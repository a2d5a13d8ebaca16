"""Checks of the comments of tables, which say to which family and which layout a table belongs."""

from __future__ import annotations

from ..config import ConnectionOptions
from ..dialect.layouts import read_comment
from ..dialect.schema import Schema
from ..errors import NewerLayout, OlderLayout, SchemaMismatch


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
