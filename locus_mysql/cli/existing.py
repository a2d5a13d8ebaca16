"""The families whose tables a database has."""

from __future__ import annotations

from ..engine.bootstrap import has_own_tables, has_tables
from ..errors import SchemaMismatch
from ..families.family import Family
from ..families.registry import families, find_family
from ..runtime.database import Database


async def existing_families(database: Database, name: str | None) -> list[Family]:
    """Return the families whose tables exist: of all families, or of the named one.

    Raises:
        SchemaMismatch: None of the tables exist.
    """
    config, engine = database.config, database.asynchronous
    asked = families() if name is None else [find_family(name)]
    found = []
    for family in asked:
        # Other applications' tables may have the names of such a family's tables.
        check = has_own_tables if family.on_request and name is None else has_tables
        if await engine.run(check(family.schema(config))):
            found.append(family)
    if not found:
        schema = asked[0].schema(config)
        missing = " and no ".join(map(repr, schema.names))
        raise SchemaMismatch(
            f"Database {config.database!r} has no table {missing}: nothing was saved there yet, or with "
            "another --prefix. The first save creates the tables; so do the statements of "
            f"`python -m locus_mysql {'schema' if name is None else schema.command}`."
        )
    return found
