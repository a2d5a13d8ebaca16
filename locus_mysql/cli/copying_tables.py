"""The kinds of ``copy`` that need no Locus: a family's records, and LangGraph's savers and stores."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

from ..config import MySQLConfig
from ..errors import LocusMySQLError, UsageError
from ..families.registry import find_family
from ..runtime.database import Database
from ..runtime.sealing import refuse_clear_tables
from ..runtime.transfer import TransferReport
from ..signals import StopRequested, until_stopped
from .arguments import FAILED, OK, need_langgraph, notify
from .progress import Progress

_MYSQL = "mysql"

#: The options of the source and of the target.
Options: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]


def config_of_side(name: str, options: Mapping[str, Any], tenant: str | None) -> MySQLConfig:
    """Return the configuration of a side: ``mysql://…``, ``mysql+driver://…``, or ``mysql`` for the environment's.

    Args:
        name: The side.
        options: Its options.
        tenant: The tenant, if neither the options nor the DSN name one.

    Raises:
        UsageError: The side is not this package's tables.
    """
    if name.split("://")[0].partition("+")[0].rstrip(":") != _MYSQL:
        raise UsageError(
            f"{name.partition(':')[0]!r:.50} cannot be a side of this copy. Give mysql://user@host/database, or mysql "
            "for LOCUS_MYSQL_DSN."
        )
    given = dict(options)
    if "://" in name:
        given["dsn"] = name
    if tenant is not None and "tenant=" not in name:
        given.setdefault("tenant", tenant)
    return MySQLConfig.from_env(**given)


def copy_records(arguments: argparse.Namespace, source: str, target: str, options: Options) -> int:
    """Copy the records of a family from one database, prefix or tenant of this package to another."""
    from ..transfer.family_copies import copy_family, head_of

    read = config_of_side(source, options[0], arguments.tenant).model_copy(update={"ddl_mode": "validate"})
    write = config_of_side(target, options[1], arguments.tenant)
    if _place(read) == _place(write):
        raise UsageError("Both sides of the copy are the same; there is nothing to copy.")
    family = find_family(arguments.family)
    reading, writing = family.transfer(read), family.transfer(write)
    if reading is None or writing is None:
        raise UsageError(f"The tables of {arguments.family!r} cannot be copied.")
    refuse_clear_tables(write, family.schema(write))
    selection = {"threads": arguments.thread, "pattern": arguments.pattern}
    records = reading.source(**{name: value for name, value in selection.items() if value not in (None, "*")})
    report = TransferReport(reading.noun, dry_run=arguments.dry_run)

    async def run(progress: Progress) -> None:
        async with Database(read) as source_database, Database(write) as target_database:
            goal = writing.target(head_of(records), overwrite=arguments.overwrite)
            await copy_family(records, source_database, goal, target_database, report, progress.advance)

    with Progress(f"{reading.noun}s") as progress:
        report.notify = progress.notify
        stopped = asyncio.run(until_stopped(run(progress)))
    if stopped is not None:
        notify(f"Stopped: {report}\nRun the copy again: it continues where it stopped.")
        raise StopRequested(stopped)
    print(report)
    return OK if report.complete else FAILED


def copy_langgraph(arguments: argparse.Namespace, source: str, target: str, options: Options) -> int:
    """Copy the threads of another saver for LangGraph, or with ``--family memories`` the items of a store."""
    need_langgraph("Copying from LangGraph's savers")
    from ..integrations.langgraph.transfer import locations, stores

    if arguments.pattern != "*":
        raise UsageError("LangGraph's savers cannot select threads by --pattern. Name them with --thread.")
    config = config_of_side(target, options[1], arguments.tenant)
    items = arguments.family is not None
    moving = find_family(arguments.family).transfer(config) if items else None
    if items and (moving is None or moving.noun != stores.NOUN):
        raise UsageError(
            "From LangGraph's packages, threads are copied, or with --family memories the items of a store."
        )
    report = TransferReport(stores.NOUN if items else "checkpoint", dry_run=arguments.dry_run)
    with Progress("items" if items else "threads") as progress:
        report.notify = progress.notify
        try:
            if items:
                with locations.open_store(source) as store:
                    asyncio.run(stores.copy_items(store, config, report, progress.advance))
            else:
                with locations.open_saver(source) as saver:
                    locations.copy_savers(saver, config, report, threads=arguments.thread, advance=progress.advance)
        except LocusMySQLError:
            raise
        except Exception as error:  # the other packages' client libraries raise errors of their own
            progress.close()
            from ..transfer.hiding import hide, secrets_in

            words = hide(str(error), set(secrets_in(source)))
            raise LocusMySQLError(f"{type(error).__name__}: {words.strip()}") from None
    print(report)
    return OK if report.complete else FAILED


def _place(config: MySQLConfig) -> tuple[Any, ...]:
    return config.endpoints, config.unix_socket, config.embedded, config.database, config.table_prefix, config.tenant
