"""``memory export`` and ``memory import``: what is in long-term memory as lines of JSON, and back."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import BinaryIO

from ..config import MySQLConfig
from ..dialect.memories.ranges import Range
from ..errors import UsageError
from ..integrations.memu.exporting import MemuSource
from ..memories.exporting import ItemSource, Source
from ..memories.namespaces import path_of
from .arguments import (
    FAILED,
    OK,
    SCOPE_HELP,
    add_connection,
    add_prefix,
    add_tenant,
    counted_items,
    fields_of,
    options_of,
    tell,
)
from .line_reader import Import
from .line_writer import Export
from .part_file import PartFile

STANDARD_STREAM = "-"


def add_memory(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``memory``."""
    ways = parser.add_subparsers(title="commands", required=True, metavar="export|import")
    export = ways.add_parser("export", help="write items to a file", allow_abbrev=False)
    export.set_defaults(memory=export_items)
    export.add_argument("file", metavar="FILE", help="where to write to; - for the standard output")
    export.add_argument(
        "--namespace", nargs="+", default=[], metavar="LABEL", help="only what is in this namespace and below (all)"
    )
    export.add_argument("--memu", action="store_true", help="memU's records, not items; see --scope and --where")
    export.add_argument(
        "--scope",
        default="user_id",
        metavar="FIELDS",
        help=f"{SCOPE_HELP} (user_id)",
    )
    export.add_argument(
        "--where", nargs="+", default=[], metavar="FIELD=VALUE", help="only memU's records of this scope (all)"
    )
    taking = ways.add_parser("import", help="write the items of a file into the tables", allow_abbrev=False)
    taking.set_defaults(memory=import_items)
    taking.add_argument("file", metavar="FILE", help="where to read from; - for the standard input")
    taking.add_argument(
        "--overwrite", action="store_true", help="write over items that are there as something else (leave them alone)"
    )
    for one in (export, taking):
        add_connection(one)
        add_tenant(one, "memories")
        add_prefix(one, "locus_; none for memU's records")


def memory(arguments: argparse.Namespace) -> int:
    """Export or import."""
    return int(arguments.memory(arguments))


def export_items(arguments: argparse.Namespace) -> int:
    """Write a tenant's items to a file. Killed and started again, it goes on where it stopped."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    source = _source(config, arguments)
    if arguments.file == STANDARD_STREAM:
        exporting = Export(config, source, _StandardOutput())
        exporting.begin()
        complete = asyncio.run(exporting.run(None))
    else:
        with PartFile(Path(arguments.file)) as file:
            exporting = Export(config, source, file)
            complete = asyncio.run(exporting.run(exporting.go_on(file)))
            file.finish()
    tell(f"Exported {counted_items(exporting.items)}.")
    return OK if complete else FAILED


def import_items(arguments: argparse.Namespace) -> int:
    """Write a file's items into the tables. Killed and started again, it passes over what is there already."""
    config = MySQLConfig.from_env(**options_of(arguments))
    if arguments.file == STANDARD_STREAM:
        done = asyncio.run(Import(config, overwrite=arguments.overwrite).run(sys.stdin.buffer))
    else:
        with _opened(arguments.file) as file:
            done = asyncio.run(Import(config, overwrite=arguments.overwrite).run(file))
    parts = [f"Imported {counted_items(done.written)}"]
    if done.present:
        parts.append(f"{done.present} there already")
    if done.differing:
        parts.append(f"{done.differing} left alone, as they are there as something else (--overwrite)")
    print(f"{', '.join(parts)}.")
    return FAILED if done.differing else OK


def _source(config: MySQLConfig, arguments: argparse.Namespace) -> Source:
    """What is to be exported."""
    if not arguments.memu:
        if arguments.where:
            raise UsageError("--where is of memU's records; give --memu too, or --namespace for items.")
        return ItemSource(config, Range(path_of(arguments.namespace, empty=True)))
    if arguments.namespace:
        raise UsageError("memU's records are in no namespace; give --where FIELD=VALUE.")
    if wrong := [one for one in arguments.where if "=" not in one]:
        raise UsageError(f"--where must be FIELD=VALUE, not {wrong[0][:80]!r}.")
    where = dict(one.split("=", 1) for one in arguments.where)
    return MemuSource(config, fields_of(arguments.scope), where)


class _StandardOutput:
    """The standard output, as an output of an export."""

    def write(self, data: bytes) -> None:
        """Add to it.

        Raises:
            UsageError: Whoever read it has gone.
        """
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError as error:
            raise UsageError(f"The standard output cannot be written: {error.strerror}.") from None


def _opened(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from None
