"""``copy`` copies threads of other stores into this package's tables, or rows of a family between two of them."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..config import MySQLConfig, hide, secrets_in
from ..errors import LocusMySQLError, SetupError, UsageError
from ..families.registry import families, find_family
from ..integrations.locus_sdk import need_locus
from ..records.transfer import RowSource, RowTarget, copy_rows
from ..runtime.arguments import from_environment
from ..runtime.database import Database
from ..signals import StopRequested, until_stopped
from ..transfer.engine import TransferReport
from .arguments import (
    FAILED,
    OK,
    SCOPE_HELP,
    add_tenant,
    add_which_threads,
    at_least_one,
    fields_of,
    need_langgraph,
    notify,
)
from .family_files import first_existing, with_scope
from .progress import Progress
from .tables import family_name

if TYPE_CHECKING:
    from ..integrations.locus.transfer.locations import Location


_MYSQL = "mysql"

#: The options of the source and of the target.
Options: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]

_AGAIN = "Run the copy again: it continues where it stopped."

#: Environment variables with the source and the target, for arguments that are not given.
FROM_VARIABLE, TO_VARIABLE = "LOCUS_MYSQL_COPY_FROM", "LOCUS_MYSQL_COPY_TO"

#: The prefix of a side that an environment variable holds, and that of the names of LangGraph's savers and stores.
_LANGGRAPH = "langgraph-"

_TARGET_HELP = (
    "mysql://… or mysql+embedded:///… (this package's tables; mysql alone: LOCUS_MYSQL_DSN), or env:NAME for a "
    "variable that holds it"
)
_SOURCE_HELP = (
    "file:PATH, redis://…, postgresql://…, http://…, builtin-mysql://…, another checkpointer of Locus' registry, "
    "package.module:function, langgraph-postgres://…, langgraph-mysql://… or langgraph-sqlite:PATH (LangGraph's "
    f"savers, and with --family memories its stores), {_TARGET_HELP}"
)


def add_copy(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``copy``."""
    parser.add_argument(
        "--from", dest="source", metavar="SOURCE", help=f"where to copy from ({FROM_VARIABLE}): {_SOURCE_HELP}"
    )
    parser.add_argument(
        "--to", dest="target", metavar="TARGET", help=f"where to copy to ({TO_VARIABLE}): {_TARGET_HELP}"
    )
    for side, name in (("from", "source"), ("to", "target")):
        parser.add_argument(
            f"--{side}-option",
            dest=f"{name}_options",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"an option of the checkpointer to copy {side}; JSON, text, or env:NAME; may be given more than once",
        )
    add_which_threads(parser)
    parser.add_argument(
        "--family",
        type=family_name,
        choices=[family.name for family in families()],
        metavar="NAME",
        help="which tables, if both sides are tables of this package (the first of these that exist)",
    )
    parser.add_argument("--scope", metavar="FIELDS", type=fields_of, help=f"with --family memu: {SCOPE_HELP} (user_id)")
    add_tenant(parser, "threads, where this package's tables are a side and its DSN names no tenant")
    parser.add_argument("--dry-run", action="store_true", help="only report what would be copied")
    parser.add_argument(
        "--at-once",
        type=at_least_one,
        default=4,
        metavar="N",
        help="number of threads that are copied concurrently (4)",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare all that was copied or present on both sides",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace threads, items and others that differ in the target (leave them alone)",
    )


def copy(arguments: argparse.Namespace) -> int:
    """Copy threads or records. A stopped copy continues when it is started again."""
    source = _named(arguments.source, FROM_VARIABLE, "--from", _SOURCE_HELP)
    target = _named(arguments.target, TO_VARIABLE, "--to", _TARGET_HELP)
    from_langgraph = source.startswith(_LANGGRAPH)
    if arguments.overwrite and from_langgraph:
        raise UsageError("What comes from LangGraph's packages replaces nothing: leave --overwrite out.")
    if from_langgraph or arguments.family is not None or _is_own(source):
        options = _options(arguments.source_options), _options(arguments.target_options)
        return (copy_langgraph if from_langgraph else copy_family)(arguments, source, target, options)
    need_locus("Copying")
    from ..integrations.locus.transfer.locations import Location

    return _copy(
        arguments,
        Location(source, _options(arguments.source_options), arguments.tenant),
        Location(target, _options(arguments.target_options), arguments.tenant),
    )


def _copy(arguments: argparse.Namespace, source: Location, target: Location) -> int:
    from ..integrations.locus.transfer import copy_threads
    from ..integrations.locus.transfer.locations import what_to_install

    report = TransferReport()
    secrets = source.secrets | target.secrets
    with Progress() as progress:
        copying = copy_threads(
            source,
            target,
            threads=arguments.thread,
            pattern=arguments.pattern,
            at_once=arguments.at_once,
            verify=arguments.verify,
            overwrite=arguments.overwrite,
            dry_run=arguments.dry_run,
            notify=lambda line: progress.notify(hide(line, secrets)),
            advance=progress.advance,
            report=report,
        )
        try:
            stopped = asyncio.run(until_stopped(copying))
        except LocusMySQLError as error:
            progress.close()
            if report.threads:
                notify(f"Broken off: {report}\n{_AGAIN}")
            words = hide(str(error), secrets)
            if words != str(error):
                raise UsageError(words) from None
            raise
        except ImportError as error:  # Locus imports a client library when it is first used
            progress.close()
            raise SetupError(what_to_install(error)) from None
        except Exception as error:  # client libraries raise any error if their server is down
            progress.close()
            words = hide(str(error), secrets)
            raise LocusMySQLError(f"{type(error).__name__}: {words}{_advice(error)}") from None
    if stopped is not None:
        notify(f"Stopped: {report}\n{_AGAIN}")
        raise StopRequested(stopped)
    print(report)
    return OK if report.complete else FAILED


def _is_own(name: str) -> bool:
    """Return whether a side is this package's tables."""
    return name.split("://")[0].partition("+")[0].rstrip(":") == _MYSQL


def _named(given: str | None, variable: str, option: str, forms: str) -> str:
    name = str(from_environment(given or os.environ.get(variable, "")))
    if not name:
        raise UsageError(f"Give {option}, or set {variable}, to say where to copy {option.strip('-')}: {forms}.")
    return name


def _advice(error: Exception) -> str:
    """Return advice for an HTTP service that refuses a request. Each client library raises its own errors."""
    if getattr(getattr(error, "response", None), "status_code", None) not in (401, 403):
        return ""
    return (
        "\nThe service requires a token, or one with more rights: http://user:token@host, or, for a token alone, "
        """--from-option (or --to-option) 'headers={"Authorization": "Bearer …"}'."""
    )


def _options(pairs: Sequence[str]) -> dict[str, Any]:
    """Return options by name. A value that is not JSON is text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise UsageError("An option must be NAME=VALUE.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = from_environment(value)
    return options


def config_of_side(name: str, options: Mapping[str, Any], tenant: str | None) -> MySQLConfig:
    """Return the configuration of a side: ``mysql://…``, ``mysql+driver://…``, or ``mysql`` for the environment's.

    Args:
        name: The side.
        options: Its options.
        tenant: The tenant, if neither the options nor the DSN name one.

    Raises:
        UsageError: The side is not this package's tables.
    """
    if not _is_own(name):
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


def copy_family(arguments: argparse.Namespace, source: str, target: str, options: Options) -> int:
    """Copy the rows of a family from one database, prefix or tenant of this package to another."""
    read = config_of_side(source, options[0], arguments.tenant).model_copy(update={"ddl_mode": "validate"})
    write = config_of_side(target, options[1], arguments.tenant)
    if _place(read) == _place(write):
        raise UsageError("Both sides of the copy are the same; there is nothing to copy.")
    name = arguments.family or first_existing(read, "Copying")
    family = with_scope(find_family(name), arguments.scope)
    report = TransferReport("row", dry_run=arguments.dry_run)

    async def run(progress: Progress) -> None:
        async with Database(read) as source_database, Database(write) as target_database:
            rows = RowSource(
                family.tables(read), read, source_database, threads=arguments.thread, pattern=arguments.pattern
            )
            goal = RowTarget(
                family.tables(write), write, target_database, overwrite=arguments.overwrite, verify=arguments.verify
            )
            await copy_rows(rows, goal, report, progress.advance)

    with Progress("rows") as progress:
        report.notify = progress.notify
        stopped = asyncio.run(until_stopped(run(progress)))
    if stopped is not None:
        notify(f"Stopped: {report}\n{_AGAIN}")
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
    if items and arguments.family != stores.FAMILY:
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
            words = hide(str(error), set(secrets_in(source)))
            raise LocusMySQLError(f"{type(error).__name__}: {words.strip()}") from None
    print(report)
    return OK if report.complete else FAILED


def _place(config: MySQLConfig) -> tuple[Any, ...]:
    return config.endpoints, config.unix_socket, config.embedded, config.database, config.table_prefix, config.tenant
