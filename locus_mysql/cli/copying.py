"""``copy``, and ``import-locus``, which is a case of it: threads from one Locus checkpointer to another."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..config import MySQLConfig
from ..errors import LocusMySQLError, SetupError, UsageError
from ..integrations.sdk import need_locus
from ..signals import StopRequested, until_stopped
from .arguments import (
    FAILED,
    OK,
    add_connection,
    add_prefix,
    add_tenant,
    add_which_threads,
    at_least_one,
    options_of,
    tell,
)
from .progress import Progress

if TYPE_CHECKING:
    from ..integrations.locus.copying.places import Place

#: Where the names of the sides are, if they are not given.
FROM_VARIABLE, TO_VARIABLE = "LOCUS_MYSQL_COPY_FROM", "LOCUS_MYSQL_COPY_TO"

_PLACE_HELP = (
    "file:PATH, redis://…, postgresql://…, http://…, mysql://… (this package's tables; mysql alone: LOCUS_MYSQL_DSN), "
    "builtin-mysql://…, what Locus' registry knows, package.module:function, or env:NAME for a variable that holds it"
)


def add_copy(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``copy``."""
    parser.add_argument(
        "--from", dest="source", metavar="SOURCE", help=f"where to copy from ({FROM_VARIABLE}): {_PLACE_HELP}"
    )
    parser.add_argument("--to", dest="target", metavar="TARGET", help=f"where to copy to ({TO_VARIABLE}): the same")
    for side, name in (("from", "source"), ("to", "target")):
        parser.add_argument(
            f"--{side}-option",
            dest=f"{name}_options",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"an option of what is opened to copy {side}; JSON, text, or env:NAME; may stand several times",
        )
    add_which_threads(parser)
    add_tenant(parser, "threads, where this package's tables are a side and its DSN names no tenant")
    _add_ways(parser)
    parser.add_argument(
        "--verify", action="store_true", help="load each checkpoint on both sides, and compare, what was there too"
    )


def add_import_locus(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``import-locus``."""
    add_connection(parser, "; where to copy to")
    parser.add_argument("--source-dsn", metavar="DSN", help="where to copy from (the same database)")
    parser.add_argument("--table", default="checkpoints", help="the built-in backend's table (checkpoints)")
    add_tenant(parser)
    add_prefix(parser)
    _add_ways(parser)
    parser.set_defaults(thread=None, pattern="*", verify=False)


def _add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be copied")
    parser.add_argument(
        "--at-once", type=at_least_one, default=4, metavar="N", help="how many threads are copied side by side (4)"
    )


def copy(arguments: argparse.Namespace) -> int:
    """Copy threads. Stopped and started again, it goes on where it stopped."""
    need_locus("Copying")
    from ..integrations.locus.copying.places import Place

    source = Place(
        _named(arguments.source, FROM_VARIABLE, "--from"), _options(arguments.source_options), arguments.tenant
    )
    target = Place(_named(arguments.target, TO_VARIABLE, "--to"), _options(arguments.target_options), arguments.tenant)
    return _copy(arguments, source, target)


def import_locus(arguments: argparse.Namespace) -> int:
    """Copy the threads of Locus' built-in MySQL backend: ``copy --from builtin-mysql:… --to mysql:…``."""
    need_locus("The import")
    from ..integrations.locus.copying.places import Place

    given = options_of(arguments)
    dsn = given.pop("dsn", None)
    config = MySQLConfig.from_env(**options_of(arguments))
    source = Place(
        f"builtin-mysql:{arguments.source_dsn or dsn or ''}", {"table": arguments.table, "driver": config.driver}
    )
    target = Place(f"mysql:{dsn or ''}", given)
    return _copy(arguments, source, target)


def _copy(arguments: argparse.Namespace, source: Place, target: Place) -> int:
    from ..integrations.locus.copying import copy_threads
    from ..integrations.locus.copying.places import hide, what_to_install
    from ..integrations.locus.copying.report import CopyReport

    report = CopyReport()
    secrets = source.secrets | target.secrets
    with Progress() as progress:

        def advance(done: CopyReport, total: int | None) -> None:
            progress.advance(done.threads, total, f"{done.copied + done.present:,} checkpoints")

        copying = copy_threads(
            source,
            target,
            threads=arguments.thread,
            pattern=arguments.pattern,
            at_once=arguments.at_once,
            verify=arguments.verify,
            dry_run=arguments.dry_run,
            tell=lambda line: progress.tell(hide(line, secrets)),
            advance=advance,
            report=report,
        )
        try:
            stopped = asyncio.run(until_stopped(copying))
        except LocusMySQLError as error:
            progress.close()
            if report.threads:
                tell(f"Broken off: {report}\nStart it again, and it goes on where it stopped.")
            words = hide(str(error), secrets)
            if words != str(error):
                raise UsageError(words) from None
            raise
        except ImportError as error:  # Locus imports a client library when it is first used
            progress.close()
            raise SetupError(what_to_install(error)) from None
        except Exception as error:  # whatever a client library raises of a server that is away
            progress.close()
            words = hide(str(error), secrets)
            raise LocusMySQLError(f"{type(error).__name__}: {words}{_advice(error)}") from None
    if stopped is not None:
        tell(f"Stopped: {report}\nStart it again, and it goes on where it stopped.")
        raise StopRequested(stopped)
    print(report)
    return OK if report.complete else FAILED


def _named(given: str | None, variable: str, option: str) -> str:
    name = given or os.environ.get(variable)
    if not name:
        raise UsageError(f"Say with {option}, or in {variable}, where to copy {option.strip('-')}: {_PLACE_HELP}.")
    return name


def _advice(error: Exception) -> str:
    """What to do when an HTTP service lets nobody in; clients raise errors of their own."""
    if getattr(getattr(error, "response", None), "status_code", None) not in (401, 403):
        return ""
    return (
        "\nThe service wants a token, or one that may do more: http://user:token@host, or, for a token alone, "
        """--from-option (or --to-option) 'headers={"Authorization": "Bearer …"}'."""
    )


def _options(pairs: Sequence[str]) -> dict[str, Any]:
    """Options by their names; what is no JSON is text."""
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
