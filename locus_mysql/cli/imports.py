"""The commands whose names begin with ``import-``: moving over from other stores."""

from __future__ import annotations

import argparse
import asyncio

from ..config import MySQLConfig
from .arguments import (
    FAILED,
    OK,
    add_connection,
    add_prefix,
    add_tenant,
    need_langgraph,
    options_of,
    tell,
)


def add_import_langgraph(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``import-langgraph``."""
    add_connection(parser, "; where to copy to")
    parser.add_argument("--source-dsn", metavar="DSN", help="where to copy from (the same database)")
    add_tenant(parser)
    add_prefix(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be copied")


def import_langgraph(arguments: argparse.Namespace) -> int:
    """Copy the checkpoints of the package langgraph-checkpoint-mysql."""
    need_langgraph("The import")
    from ..integrations.langgraph.importing import LangGraphImport

    source, target = _from_and_to(arguments)
    summary = asyncio.run(LangGraphImport(source, target, dry_run=arguments.dry_run, tell=tell).run())
    print(summary)
    return OK if summary.complete else FAILED


def import_langgraph_store(arguments: argparse.Namespace) -> int:
    """Copy the items of the store of the package langgraph-checkpoint-mysql."""
    need_langgraph("The import")
    from ..integrations.langgraph.importing_store import LangGraphStoreImport

    source, target = _from_and_to(arguments)
    summary = asyncio.run(LangGraphStoreImport(source, target, dry_run=arguments.dry_run, tell=tell).run())
    print(summary)
    return OK if summary.complete else FAILED


def _from_and_to(arguments: argparse.Namespace) -> tuple[MySQLConfig, MySQLConfig]:
    target = MySQLConfig.from_env(**options_of(arguments))
    source = MySQLConfig(dsn=arguments.source_dsn, driver=target.driver) if arguments.source_dsn else target
    return source, target
