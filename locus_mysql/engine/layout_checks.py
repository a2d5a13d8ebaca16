"""Checks of the comments of tables, which say to which family and which layout a table belongs."""

from __future__ import annotations

from collections.abc import Mapping

from ..config import ConnectionOptions
from ..dialect.layouts import Unreleased, read_comment
from ..dialect.schema import Schema
from ..errors import NewerLayout, OlderLayout, SchemaMismatch, UnreleasedLayout


def check_layout(config: ConnectionOptions, schema: Schema, table: str, comment: str) -> None:
    """Check that a table is one of the family, in a layout that this version can use.

    Args:
        config: The options, with the name of the database for messages.
        schema: The tables of the family.
        table: The table's name.
        comment: Its comment.

    Raises:
        OlderLayout, NewerLayout, UnreleasedLayout: It belongs to another version.
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
    if isinstance(found, Unreleased):
        raise _unreleased(config, table)
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


def check_former_tables(config: ConnectionOptions, schema: Schema, comments: Mapping[str, str]) -> None:
    """Check that no development version kept rows of the family under another name.

    Args:
        config: The options, with the name of the database for messages.
        schema: The tables of the family.
        comments: The comments of the existing tables by their names in small letters.

    Raises:
        UnreleasedLayout: One did. New tables beside those would hide their rows.
    """
    for name in schema.former_names:
        found = read_comment(comments.get(name.casefold(), ""))
        if isinstance(found, Unreleased) and found.family in ("", schema.family):
            raise _unreleased(config, name)


def is_of_family(schema: Schema, comment: str) -> bool:
    """Return whether this package wrote the comment for a table of the family, in any version."""
    found = read_comment(comment)
    if isinstance(found, Unreleased):
        return found.family in ("", schema.family)
    return found is not None and found.family == schema.family


def _unreleased(config: ConnectionOptions, table: str) -> UnreleasedLayout:
    return UnreleasedLayout(
        f"Table {table!r} in database {config.database!r} was made by a development version of locus-mysql from before "
        "release 0.1.0. This version can neither read nor migrate it. Export the data with the version that wrote it, "
        "and import that into new tables with another table_prefix; or drop the old tables. Nothing was changed."
    )
