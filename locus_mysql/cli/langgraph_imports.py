"""``import-langgraph`` and ``import-langgraph-store``: migrate from the package ``langgraph-checkpoint-mysql``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..config import MySQLConfig
from ..runtime.transfer import TransferReport
from ..transfer.engine import Advance
from .arguments import FAILED, OK, add_connection, add_prefix, add_tenant, need_langgraph, options_of
from .progress import Progress


def add_import_langgraph(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``import-langgraph``."""
    add_connection(parser, "; where to copy to")
    parser.add_argument("--source-dsn", metavar="DSN", help="where to copy from (the same database)")
    add_tenant(parser)
    add_prefix(parser)
    parser.add_argument("--dry-run", action="store_true", help="only report what would be copied")


def import_langgraph(arguments: argparse.Namespace) -> int:
    """Copy the checkpoints of the package langgraph-checkpoint-mysql."""
    need_langgraph("The import")
    from ..integrations.langgraph.transfer.package_checkpoints import import_checkpoints

    return _run(arguments, import_checkpoints, TransferReport("checkpoint"), "threads")


def import_langgraph_store(arguments: argparse.Namespace) -> int:
    """Copy the items of the store of the package langgraph-checkpoint-mysql."""
    need_langgraph("The import")
    from ..integrations.langgraph.transfer.package_store import import_store

    return _run(arguments, import_store, TransferReport("item"), "items")


def _run(
    arguments: argparse.Namespace,
    run: Callable[[MySQLConfig, MySQLConfig, TransferReport, Advance], Coroutine[Any, Any, TransferReport]],
    report: TransferReport,
    noun: str,
) -> int:
    target = MySQLConfig.from_env(**options_of(arguments))
    source = MySQLConfig(dsn=arguments.source_dsn, driver=target.driver) if arguments.source_dsn else target
    with Progress(noun) as progress:
        report.dry_run, report.notify = arguments.dry_run, progress.notify
        asyncio.run(run(source, target, report, progress.advance))
    print(report)
    return OK if report.complete else FAILED
