"""The families whose tables a database has, and the error if it has none."""

from __future__ import annotations

from ..config import MySQLConfig
from ..dialect.layouts import read_comment
from ..dialect.schema import DESCRIBE_OWN, TableComment
from ..engine.bootstrap import has_own_tables, has_tables
from ..engine.operation import fetch
from ..errors import SchemaMismatch
from ..families.family import Family
from ..families.registry import families, find_family
from ..runtime.database import Database

#: A prefix with which tables are named to find out the rest of their names.
_PROBE = "probe_"


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
        raise SchemaMismatch(await without_tables(database, name))
    return found


async def without_tables(database: Database, name: str | None, kind: str = "") -> str:
    """Return the message that tables do not exist, with those that do, so that a wrong prefix is noticed.

    Args:
        database: The database.
        name: The family; None for all.
        kind: What the tables would have, such as `` of threads``.
    """
    config = database.config
    schema = (families()[0] if name is None else find_family(name)).schema(config)
    which = f" of family {name!r}" if name else kind
    prefix = _prefix_of(config, name) if name else config.table_prefix
    others = await other_tables(database)
    return (
        f"Database {config.database!r} has no tables{which} with prefix {prefix!r}: nothing was saved there yet, or "
        "with another --prefix. The first save creates the tables; so do the statements of "
        f"`python -m locus_mysql {schema.command if name else 'schema'}`.{f' {others}' if others else ''}"
    )


async def other_tables(database: Database) -> str:
    """Return a sentence with all tables of this package in the database, by prefix; empty if there are none."""
    found = await database.asynchronous.run(fetch(DESCRIBE_OWN))
    by_prefix: dict[str, dict[str, None]] = {}
    for table in found:
        prefix, family = _origin(database.config, table)
        by_prefix.setdefault(prefix, {})[family] = None
    if not by_prefix:
        return ""
    listed = "; ".join(f"{', '.join(names)} with prefix {prefix!r}" for prefix, names in sorted(by_prefix.items()))
    return f"Existing tables of locus-mysql in this database: {listed}."


def _origin(config: MySQLConfig, table: TableComment) -> tuple[str, str]:
    """Return the prefix of a table and the name of its family; of an unknown family, the table's name."""
    comment = read_comment(table.comment or "")
    fitting = [
        (ending, family.name)
        for family in families()
        if comment is None or comment.family == family.name
        for ending in _endings(config, family)
        if table.name.endswith(ending)
    ]
    if not fitting:
        return "", f"table {table.name}"
    ending, name = max(fitting, key=lambda one: len(one[0]))
    return table.name.removesuffix(ending), name


def _prefix_of(config: MySQLConfig, name: str) -> str:
    """Return the prefix of a family's tables; some families have none unless the configuration gives one."""
    family = find_family(name)
    return family.schema(config).names[0].removesuffix(_endings(config, family)[0])


def _endings(config: MySQLConfig, family: Family) -> list[str]:
    """Return the names of a family's tables without their prefix."""
    return [name.removeprefix(_PROBE) for name in family.schema(config.for_store(table_prefix=_PROBE)).names]
