"""``schema`` and ``grants``: print statements for a database administrator. And which families' tables exist."""

from __future__ import annotations

import argparse
import re
from collections.abc import AsyncGenerator, Iterable, Sequence

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.schema import DESCRIBE_OWN, TableComment, read_comment
from ..dialect.structure import MAX_PARTITIONS, CannotPartition, partitioned
from ..dialect.variants import OCEANBASE, FamilyRefused
from ..dialect.words import NO_STOP_WORDS
from ..engine.bootstrap import has_own_tables, has_tables
from ..engine.operation import fetch
from ..errors import SchemaMismatch, UsageError
from ..families.family import Family, HasUserModel
from ..families.registry import families, find_family
from ..runtime.database import Database
from .arguments import OK, SCOPE_HELP, add_prefix, fields_of, options_of

_ACCOUNT = re.compile(r"'[^'\\\x00-\x1f]{1,32}'@'[^'\\\x00-\x1f]{1,255}'")

#: A prefix with which tables are named to find out the rest of their names.
_PROBE = "probe_"


def add_family(parser: argparse.ArgumentParser, known: Iterable[Family], *, scoped: bool = False) -> None:
    """Add ``--family``, and ``--scope`` for memU's user model.

    Args:
        parser: The parser of the command.
        known: The families to choose from.
        scoped: Whether the command needs the scope. It then takes any number of families.
    """
    by_name = {family.name: family for family in known}
    listed = ", ".join(f"{name} ({family.title}: {family.users})" for name, family in by_name.items())
    parser.add_argument(
        "--family",
        action="append" if scoped else "store",
        type=family_name,
        choices=tuple(by_name),
        metavar="NAME",
        help=f"only these tables{'; may be given more than once' if scoped else ''}: {listed}",
    )
    if scoped:
        parser.add_argument(
            "--scope",
            metavar="FIELDS",
            default="user_id",
            help=f"{SCOPE_HELP}; by default memU's own, user_id. memU's tables are printed only with --family memu",
        )


def family_name(text: str) -> str:
    """Return the name of a family, given by its name or by its title in the inspector, such as ``plain-states``."""
    titles = {family.title.casefold().replace(" ", "-"): family.name for family in families()}
    return titles.get(text.casefold().replace(" ", "-"), text)


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``schema``."""
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, families(), scoped=True)
    parser.add_argument("--no-search", dest="search", action="store_false", default=None, help="no full-text index")
    parser.add_argument(
        "--parser", dest="search_parser", choices=("default", "ngram"), help="ngram for Chinese, Japanese and Korean"
    )
    parser.add_argument("--engine", choices=("mysql", "oceanbase"), default="mysql", help="the engine (mysql)")
    parser.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help=f"on OceanBase: put each table into N partitions, 2 to {MAX_PARTITIONS}, which it spreads over servers",
    )


def add_grants(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``grants``."""
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, families(), scoped=True)
    parser.add_argument("--database", required=True, help="the database that holds the tables")
    parser.add_argument("--account", default="'agent'@'%'", help="the account, such as \"'agent'@'%%'\"")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--create", action="store_true", help="also grant what the account needs to create the tables itself"
    )
    more.add_argument("--migrate", action="store_true", help="also grant what the account needs for `migrate`")


def schema(arguments: argparse.Namespace) -> int:
    """Print the statements that create the tables."""
    found = schemas(MySQLConfig.from_env(**options_of(arguments)), arguments.family or (), arguments.scope)
    if arguments.engine == "oceanbase":
        return _schema_on_oceanbase(found, arguments.partitions, named=arguments.family is not None)
    if arguments.partitions is not None:
        raise UsageError(
            "--partitions is for OceanBase: give --engine oceanbase. MySQL's partitions are all on one server, and its "
            "partitioned tables have no full-text index."
        )
    statements = [statement.sql for schema in found for statement in schema.create()]
    if any("FULLTEXT" in statement for statement in statements):
        print(f"{NO_STOP_WORDS};")
    for statement in statements:
        print(f"{statement};")
    return OK


def _schema_on_oceanbase(found: list[Schema], partitions: int | None, *, named: bool) -> int:
    """Print the statements for OceanBase; comments name the families that it does not support."""
    if partitions is not None and not 2 <= partitions <= MAX_PARTITIONS:
        raise UsageError(f"--partitions must be 2 to {MAX_PARTITIONS}, not {partitions}.")
    for schema in found:
        try:
            statements = partitioned(schema, OCEANBASE, partitions)
        except (FamilyRefused, CannotPartition) as error:
            if named:
                raise UsageError(str(error)) from None
            print(f"-- {error}")
            continue
        for statement in statements:
            print(f"{statement.sql};")
    return OK


def grants(arguments: argparse.Namespace) -> int:
    """Print the GRANT statements of an account."""
    account = arguments.account
    if not _ACCOUNT.fullmatch(account):
        raise UsageError(f"An account is written as 'name'@'host', each in single quotes, not {account[:80]!r}.")
    config = MySQLConfig.from_env(**options_of(arguments), database=arguments.database)
    wanted = schemas(config, arguments.family or (), arguments.scope)
    if arguments.create:
        more = ", REFERENCES" if any(schema.has_foreign_keys for schema in wanted) else ""
        print(f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE{more} ON `{config.database}`.* TO {account};")
        return OK
    for schema in wanted:
        for grant in schema.grants(config.database, account, migrates=arguments.migrate):
            print(f"{grant};")
    return OK


def schemas(config: MySQLConfig, names: Sequence[str] = (), scope: str = "user_id") -> list[Schema]:
    """Return the tables of some families, or of all families except those that must be named.

    Args:
        config: The options; only the prefix and the full-text index are used.
        names: Their names.
        scope: The fields of memU's user model, joined by commas; see `integrations.memu.scope`.

    Raises:
        UsageError: A field of the scope cannot be a column.
    """
    chosen = [find_family(name) for name in names] or [one for one in families() if not one.on_request]
    with_fields = [one.with_fields(fields_of(scope)) if isinstance(one, HasUserModel) else one for one in chosen]
    return [one.schema(config) for one in with_fields]


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


async def tenants_of(database: Database, family: Family, after: str = "") -> AsyncGenerator[str, None]:
    """Return the tenants that have owners in the tables of a family after one, in their order."""
    maintenance, schema = family.maintenance(database.config), family.schema(database.config)
    while page := await database.asynchronous.run(maintenance.tenants(after), schema, "validate"):
        for after in page:
            yield after


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
        "with another --table-prefix. The first save creates the tables; so do the statements of "
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
