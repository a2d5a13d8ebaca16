"""``memory export`` writes long-term memory as lines of JSON; ``memory import`` reads it back."""

from __future__ import annotations

import argparse

from ..errors import UsageError
from ..families.memories.family import MEMORIES
from ..integrations.memu.family import MEMU
from .arguments import SCOPE_HELP, add_connection, add_prefix, add_tenant, fields_of
from .family_files import export_family, import_file


def add_memory(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``memory``."""
    ways = parser.add_subparsers(title="commands", required=True, metavar="export|import")
    export = ways.add_parser("export", help="write items to a file", allow_abbrev=False)
    export.set_defaults(memory=export_items)
    export.add_argument("file", metavar="FILE", help="where to write to; - for the standard output")
    export.add_argument(
        "--namespace", nargs="+", default=[], metavar="LABEL", help="only items in this namespace and below (all)"
    )
    export.add_argument(
        "--memu", action="store_true", help="export memU's records instead of items; see --scope and --where"
    )
    export.add_argument("--scope", default="user_id", metavar="FIELDS", help=f"{SCOPE_HELP} (user_id)")
    export.add_argument(
        "--where", nargs="+", default=[], metavar="FIELD=VALUE", help="only memU's records in this scope (all)"
    )
    taking = ways.add_parser("import", help="write the items of a file into the tables", allow_abbrev=False)
    taking.set_defaults(memory=import_file)
    taking.add_argument("file", metavar="FILE", help="where to read from; - for the standard input")
    taking.add_argument(
        "--overwrite", action="store_true", help="replace items that differ in the tables (leave them alone)"
    )
    for one in (export, taking):
        add_connection(one)
        add_tenant(one, "memories")
        add_prefix(one, "locus_; none for memU's records")


def memory(arguments: argparse.Namespace) -> int:
    """Export or import."""
    return int(arguments.memory(arguments))


def export_items(arguments: argparse.Namespace) -> int:
    """Write a tenant's items, or memU's records, to a file. A killed export continues when it is started again."""
    if not arguments.memu:
        if arguments.where:
            raise UsageError("--where selects memU's records. Give --memu too, or --namespace to select items.")
        return export_family(arguments, MEMORIES.name, namespace=arguments.namespace)
    if arguments.namespace:
        raise UsageError("memU's records have no namespaces. Give --where FIELD=VALUE.")
    if wrong := [one for one in arguments.where if "=" not in one]:
        raise UsageError(f"--where must be FIELD=VALUE, not {wrong[0][:80]!r}.")
    where = dict(one.split("=", 1) for one in arguments.where)
    return export_family(arguments, MEMU.name, scope=fields_of(arguments.scope), where=where)
