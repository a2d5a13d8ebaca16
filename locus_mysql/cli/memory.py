"""``memory export`` and ``memory import``: what is in long-term memory as lines of JSON, and back."""

from __future__ import annotations

import argparse
from functools import partial

from ..config import MySQLConfig
from ..dialect.memories.ranges import Range
from ..errors import InvalidInput, UsageError
from ..families.memories.exporting import ItemSource, ItemTarget
from ..families.memories.lines import FORMAT
from ..families.memories.namespaces import path_of
from ..integrations.counting import counted
from ..integrations.memu.exporting import FORMAT as MEMU_FORMAT
from ..integrations.memu.exporting import MemuSource, MemuTarget
from ..runtime.checksummed_jsonl import Head
from ..runtime.exporting import Source, Target
from .arguments import (
    FAILED,
    OK,
    SCOPE_HELP,
    add_connection,
    add_prefix,
    add_tenant,
    fields_of,
    options_of,
    tell,
)
from .line_files import read_lines, write_lines
from .line_reader import Import


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
    return OK if write_lines(config, _source(config, arguments), arguments.file, "item") else FAILED


def import_items(arguments: argparse.Namespace) -> int:
    """Write a file's items into the tables. Killed and started again, it passes over what is there already."""
    config = MySQLConfig.from_env(**options_of(arguments))
    done = read_lines(Import(config, partial(_target, config, overwrite=arguments.overwrite)), arguments.file)
    parts = [f"Imported {counted(done.written, 'item')}"]
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


def _target(config: MySQLConfig, head: Head, *, overwrite: bool) -> Target:
    """What takes the lines behind a first one."""
    if head.format == FORMAT:
        return ItemTarget(config, tell, overwrite=overwrite)
    if head.format == MEMU_FORMAT:
        if overwrite:
            raise InvalidInput("The file holds memU's records, which are not written over (--overwrite).")
        scope = head.content.get("scope")
        if not isinstance(scope, list) or not all(isinstance(name, str) for name in scope):
            raise InvalidInput("The file does not say which fields memU's user model has (scope).")
        return MemuTarget(config, scope, tell)
    raise InvalidInput(f"The file holds {head.format[:50]!r}, which this command does not take.")
