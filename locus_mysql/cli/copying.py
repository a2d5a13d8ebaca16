"""``copy`` copies threads of other stores into this package's tables, or records of a family between two of them."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import LocusMySQLError, SetupError, UsageError
from ..families.registry import families
from ..integrations.sdk import need_locus
from ..runtime.transfer import TransferReport
from ..signals import StopRequested, until_stopped
from .arguments import (
    FAILED,
    OK,
    add_tenant,
    add_which_threads,
    at_least_one,
    notify,
)
from .progress import Progress
from .tables import family_name

if TYPE_CHECKING:
    from ..integrations.locus.transfer.locations import Location

_AGAIN = "Run the copy again: it continues where it stopped."

#: Environment variables with the source and the target, for arguments that are not given.
FROM_VARIABLE, TO_VARIABLE = "LOCUS_MYSQL_COPY_FROM", "LOCUS_MYSQL_COPY_TO"

#: The prefix of a side that an environment variable holds, and that of the names of LangGraph's savers and stores.
_FROM_ENVIRONMENT, _LANGGRAPH = "env:", "langgraph-"

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
        help="copy the records of these tables of this package, whose DSNs are both sides, instead of Locus' threads",
    )
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
        help="load each checkpoint on both sides and compare, also those that were present",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="with --family: replace items and records that differ in the target (leave them alone)",
    )


def copy(arguments: argparse.Namespace) -> int:
    """Copy threads or records. A stopped copy continues when it is started again."""
    source = _named(arguments.source, FROM_VARIABLE, "--from", _SOURCE_HELP)
    target = _named(arguments.target, TO_VARIABLE, "--to", _TARGET_HELP)
    from_langgraph = source.startswith(_LANGGRAPH)
    if arguments.overwrite and (from_langgraph or arguments.family is None):
        raise UsageError("Checkpoints of threads are not replaced: --overwrite needs --family.")
    if from_langgraph or arguments.family is not None:
        from .copying_tables import copy_langgraph, copy_records

        options = _options(arguments.source_options), _options(arguments.target_options)
        return (copy_langgraph if from_langgraph else copy_records)(arguments, source, target, options)
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
    from ..transfer.hiding import hide

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


def _named(given: str | None, variable: str, option: str, forms: str) -> str:
    name = given or os.environ.get(variable)
    if name and name.startswith(_FROM_ENVIRONMENT):
        held = os.environ.get(name.removeprefix(_FROM_ENVIRONMENT))
        if not held:
            raise UsageError(f"There is no variable {name.removeprefix(_FROM_ENVIRONMENT)!r} in the environment.")
        return held
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
            options[name] = value
    return options
