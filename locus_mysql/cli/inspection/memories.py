"""``memories``: lists, shows and deletes items of long-term memory."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ...families.inspection.memory_records import ItemRow, NamespaceRow
from ...families.inspection.records import Page
from ...families.memories.operations import MemoryOperations
from ...inspection.inspector import Inspector
from ...runtime.generators import drive_awaited
from ..sanitize import sanitize_line
from .command import PAGE, Clock
from .measures import format_size
from .records import Records, add_records, run_records
from .screen import Column


def add_memories(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``memories``."""
    add_records(parser, MEMORIES)


def run_memories(arguments: argparse.Namespace) -> int:
    """Run a subcommand."""
    return run_records(arguments)


def _add_namespace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--namespace",
        nargs="+",
        default=[],
        metavar="LABEL",
        help="the items of exactly this namespace; without it, the namespaces",
    )


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the item's key")
    parser.add_argument("--namespace", nargs="+", required=True, metavar="LABEL", help="the item's namespace")


def _name(arguments: argparse.Namespace) -> str:
    return sanitize_line(f"item {arguments.key} in {' / '.join(arguments.namespace)}")


async def _page(inspector: Inspector, arguments: argparse.Namespace, cursor: str | None) -> Page[Any]:
    limit = min(arguments.limit, PAGE)
    if not arguments.namespace:
        return await inspector.namespaces(limit=limit, cursor=cursor)
    return await inspector.items(arguments.namespace, limit=limit, cursor=cursor)


def _columns(arguments: argparse.Namespace, clock: Clock) -> Sequence[Column]:
    if not arguments.namespace:
        return (Column("namespace", "bold"), _number("items"), _number("size"), _number("age"))
    return (Column("item", "bold"), Column("value"), _number("size"), _number("age"))


def _number(title: str) -> Column:
    return Column(title, right=True, whole=True)


def _cells(row: ItemRow | NamespaceRow, clock: Clock) -> Sequence[str]:
    if isinstance(row, NamespaceRow):
        return (" / ".join(row.namespace), f"{row.items:,}", format_size(row.size_bytes), clock.age(row.updated_at))
    return (row.key, row.preview[:80], format_size(row.size_bytes), clock.age(row.updated_at))


async def _find(inspector: Inspector, arguments: argparse.Namespace) -> Any:
    return await inspector.item(arguments.namespace, arguments.key)


async def _delete(inspector: Inspector, arguments: argparse.Namespace) -> bool:
    operations = MemoryOperations(inspector.config.model_copy(update={"search": False}))

    async def run(operation: Any) -> Any:
        return await inspector.database.asynchronous.run(operation, operations.schema, "validate")

    return bool(await drive_awaited(operations.delete(arguments.namespace, arguments.key), run))


MEMORIES = Records(
    noun="memory",
    owner="memories",
    family="memories",
    add_filter=_add_namespace,
    add_name=_add_name,
    name=_name,
    page=_page,
    columns=_columns,
    cells=_cells,
    find=_find,
    delete=_delete,
)
