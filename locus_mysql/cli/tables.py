"""``schema`` and ``grants``: what a database administrator runs beforehand. They connect to nothing."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.checkpoints.tables import INFIXES, checkpoint_schema
from ..dialect.graphs.tables import versions_schema
from ..dialect.memories.tables import memory_schema
from ..dialect.working.tables import working_schema
from ..errors import UsageError
from ..integrations.memu.database import own_prefix
from ..integrations.memu.operations import MemuStore
from ..integrations.memu.scope_names import kinds_of, model_of
from .arguments import OK, SCOPE_HELP, add_prefix, fields_of, options_of

#: The families of tables, and whose they are.
FAMILIES = {
    "agents": "MySQLCheckpointer",
    "dicts": "CheckpointStore",
    "current": "MySQLBackend",
    "versions": "MySQLCheckpointSaver, and LangGraph's savers",
    "memories": "MemoryStore, MySQLMemory, and LangGraph's stores",
    "memu": "MemuDatabase",
    "working": "WorkingMemory",
}

#: Of these, those that hold threads.
THREADED = ("agents", "dicts", "current", "versions")

_ACCOUNT = re.compile(r"'[^'\\\x00-\x1f]{1,32}'@'[^'\\\x00-\x1f]{1,255}'")


def add_family(
    parser: argparse.ArgumentParser, families: Sequence[str] = tuple(FAMILIES), *, scoped: bool = True
) -> None:
    """Which family of tables, and the scope of memU's if that matters."""
    known = ", ".join(f"{name} ({FAMILIES[name]})" for name in families)
    parser.add_argument("--family", choices=families, help=f"only these tables: {known}")
    if scoped:
        parser.add_argument(
            "--scope",
            metavar="FIELDS",
            default="user_id",
            help=f"{SCOPE_HELP}; by default memU's own, user_id. memU's tables are printed only if asked for",
        )


def add_schema(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``schema``."""
    add_prefix(parser, "locus_; none for memu")
    add_family(parser)
    parser.add_argument("--no-search", dest="search", action="store_false", default=None, help="no full-text index")
    parser.add_argument(
        "--parser", dest="search_parser", choices=("default", "ngram"), help="ngram for Chinese, Japanese and Korean"
    )


def add_grants(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``grants``."""
    add_prefix(parser, "locus_; none for memu")
    add_family(parser)
    parser.add_argument("--database", required=True, help="the database that holds the tables")
    parser.add_argument("--account", default="'agent'@'%'", help="whom to grant, such as \"'agent'@'%%'\"")
    parser.add_argument("--create", action="store_true", help="the account makes the tables itself")


def schema(arguments: argparse.Namespace) -> int:
    """Print the statements that make the tables; connects to nothing."""
    for family in schemas(MySQLConfig.from_env(**options_of(arguments)), arguments.family, arguments.scope):
        for statement in family.create():
            print(f"{statement.sql};")
    return OK


def grants(arguments: argparse.Namespace) -> int:
    """Print the GRANT statements of an account; connects to nothing."""
    account = arguments.account
    if not _ACCOUNT.fullmatch(account):
        raise UsageError(f"An account is written as 'name'@'host', each in single quotes, not {account[:80]!r}.")
    config = MySQLConfig.from_env(**options_of(arguments), database=arguments.database)
    if arguments.create:
        more = ", REFERENCES" if arguments.family == "memu" else ""  # its tables have foreign keys
        print(f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE{more} ON `{config.database}`.* TO {account};")
        return OK
    for family in schemas(config, arguments.family, arguments.scope):
        for grant in family.grants(config.database, account):
            print(f"{grant};")
    return OK


def schemas(config: MySQLConfig, family: str | None = None, scope: str = "user_id") -> list[Schema]:
    """The tables of one family; or of all but memU's, whose columns depend on its user model.

    Args:
        config: Has the prefix.
        family: Its name.
        scope: The fields of memU's user model, joined by commas; see `integrations.memu.scope_names`.
    """
    if family == "memu":
        try:
            return [MemuStore(own_prefix(config), model_of(kinds_of(fields_of(scope))), 0).schema]
        except TypeError as error:
            raise UsageError(str(error)) from None
    schemas = [
        checkpoint_schema(config.table_prefix, kind, search=config.search, search_parser=config.search_parser)
        for kind in INFIXES
    ]
    schemas.append(versions_schema(config.table_prefix))
    schemas.append(memory_schema(config.table_prefix, search=config.search, search_parser=config.search_parser))
    schemas.append(working_schema(config.table_prefix))
    return [schema for schema in schemas if family in {None, schema.family}]
