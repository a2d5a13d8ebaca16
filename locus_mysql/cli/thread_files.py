"""``export`` and ``import``: threads as lines of JSON, and back."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from ..config import MySQLConfig
from ..dialect.checkpoints.tables import Kind
from ..errors import InvalidInput
from ..families.checkpoints.exporting import ThreadSource, ThreadTarget
from ..families.checkpoints.lines import FAMILIES, FORMAT
from ..families.checkpoints.store import StoreOperations
from ..integrations.counting import counted
from ..integrations.locus.dicts import AgentDictOperations
from ..runtime.checksummed_jsonl import Head
from ..runtime.exporting import Target
from .arguments import (
    FAILED,
    OK,
    add_connection,
    add_prefix,
    add_tenant,
    add_which_threads,
    options_of,
    tell,
)
from .line_files import read_lines, write_lines
from .line_reader import Import


def add_export(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``export``."""
    parser.add_argument("file", metavar="FILE", help="where to write to; - for the standard output")
    add_which_threads(parser)
    parser.add_argument(
        "--since",
        type=_time,
        metavar="TIME",
        help="only checkpoints saved since, as 2026-01-31 or 2026-01-31T12:00; without a zone, in UTC",
    )
    parser.add_argument(
        "--family", choices=FAMILIES, default="agents", help="states of Locus agents, or of CheckpointStore (agents)"
    )
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``import``."""
    parser.add_argument("file", metavar="FILE", help="where to read from; - for the standard input")
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser)


def export_threads(arguments: argparse.Namespace) -> int:
    """Write a tenant's threads to a file. Killed and started again, it goes on where it stopped."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    tables = tables_of(config, arguments.family)
    source = ThreadSource(tables, threads=arguments.thread, glob=arguments.pattern, since=arguments.since)
    return OK if write_lines(config, source, arguments.file, "checkpoint") else FAILED


def import_threads(arguments: argparse.Namespace) -> int:
    """Write a file's threads into the tables. Killed and started again, it passes over what is there already."""
    config = MySQLConfig.from_env(**options_of(arguments))

    def target_of(head: Head) -> Target:
        family = head.content.get("family")
        if head.format != FORMAT or family not in FAMILIES:
            raise InvalidInput(f"The file holds {head.format[:50]!r}, which this command does not take.")
        return ThreadTarget(tables_of(config, family), tell)

    done = read_lines(Import(config, target_of, "checkpoint"), arguments.file)
    parts = [f"Imported {counted(done.written, 'checkpoint')}"]
    if done.present:
        parts.append(f"{done.present} there already")
    if done.differing:
        parts.append(f"{done.differing} left alone")
    print(f"{', '.join(parts)}.")
    return FAILED if done.differing else OK


def tables_of(config: MySQLConfig, family: Kind) -> StoreOperations:
    """The tables of a family, for the configuration's tenant."""
    return AgentDictOperations(config) if family == "agents" else StoreOperations(config, family)


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.min
    if moment.year < 1000:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no date. Write 2026-01-31, or 2026-01-31T15:00+02:00.")
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
