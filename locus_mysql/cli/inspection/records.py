"""``memories`` and ``session``: commands of families without threads, each with ``list``, ``show`` and ``delete``."""

from __future__ import annotations

import argparse
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...errors import NotFound
from ...families.inspection.item_records import ItemRow, NamespaceRow
from ...families.inspection.records import Page, SessionRow
from ...families.memories.family import MEMORIES
from ...families.memories.operations import MemoryOperations
from ...families.working import calls
from ...families.working.family import WORKING
from ...families.working.storages.mysql import WorkingOperations
from ...inspection.inspector import Inspector
from ...runtime.generators import drive_awaited
from ..arguments import FAILED, OK, add_connection, add_limit, add_prefix, add_tenant, notify, sanitize_line
from .command import Clock, add_output, collect, confirm, format_size, look
from .screen import Column, Screen, Segment, as_json, json_text, write_json


class Records(ABC):
    """A kind of record, for the three subcommands.

    Attributes:
        noun: Its singular noun.
        plural: Its plural noun.
        family: The name of the family.
    """

    noun: str
    plural: str
    family: str

    @abstractmethod
    def add_filter(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments that select records of a list."""

    @abstractmethod
    def add_name(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments that name one record."""

    @abstractmethod
    def name(self, arguments: argparse.Namespace) -> str:
        """Return the description of a record from these arguments."""

    @abstractmethod
    async def page(self, inspector: Inspector, arguments: argparse.Namespace) -> Page[Any]:
        """Read the page of a list that the arguments select."""

    @abstractmethod
    def columns(self, arguments: argparse.Namespace) -> Sequence[Column]:
        """Return the columns of a list."""

    @abstractmethod
    def cells(self, row: Any, clock: Clock) -> Sequence[str]:
        """Return the cells of a record in a list."""

    @abstractmethod
    async def find(self, inspector: Inspector, arguments: argparse.Namespace) -> Any:
        """Read a record; None if it does not exist."""

    @abstractmethod
    async def delete(self, inspector: Inspector, arguments: argparse.Namespace) -> bool:
        """Delete a record; return whether it existed."""


class Memories(Records):
    """Items of long-term memory; without a namespace, a list has the namespaces."""

    noun, plural, family = "memory", "memories", MEMORIES.name

    def add_filter(self, parser: argparse.ArgumentParser) -> None:
        """Add ``--namespace``, which may be left out."""
        text = "the items of exactly this namespace; without it, the namespaces"
        parser.add_argument("--namespace", nargs="+", default=[], metavar="LABEL", help=text)

    def add_name(self, parser: argparse.ArgumentParser) -> None:
        """Add the key and the namespace."""
        parser.add_argument("key", metavar="KEY", help="the item's key")
        parser.add_argument("--namespace", nargs="+", required=True, metavar="LABEL", help="the item's namespace")

    def name(self, arguments: argparse.Namespace) -> str:
        """Return key and namespace."""
        return sanitize_line(f"item {arguments.key} in {' / '.join(arguments.namespace)}")

    async def page(self, inspector: Inspector, arguments: argparse.Namespace) -> Page[Any]:
        """Read a page of namespaces, or of items."""
        read: Any = partial(inspector.items, arguments.namespace) if arguments.namespace else inspector.namespaces
        return await collect(read, arguments.limit, arguments.cursor)

    def columns(self, arguments: argparse.Namespace) -> Sequence[Column]:
        """Return the columns of namespaces, or of items."""
        if not arguments.namespace:
            return (Column("namespace", "bold"), *_numbers("items", "size", "age"))
        return (Column("item", "bold"), Column("value"), *_numbers("size", "age"))

    def cells(self, row: ItemRow | NamespaceRow, clock: Clock) -> Sequence[str]:
        """Return the cells of a namespace, or of an item."""
        if isinstance(row, NamespaceRow):
            first = (" / ".join(row.namespace), f"{row.items:,}")
        else:
            first = (row.key, row.preview[:80])
        return (*first, format_size(row.size_bytes), clock.age(row.updated_at))

    async def find(self, inspector: Inspector, arguments: argparse.Namespace) -> Any:
        """Read an item."""
        return await inspector.item(arguments.namespace, arguments.key)

    async def delete(self, inspector: Inspector, arguments: argparse.Namespace) -> bool:
        """Delete an item."""
        operations = MemoryOperations(inspector.config.model_copy(update={"search": False}))

        async def run(operation: Any) -> Any:
            return await inspector.database.asynchronous.run(operation, operations.schema, "validate")

        return bool(await drive_awaited(operations.delete(arguments.namespace, arguments.key), run))


class Sessions(Records):
    """Sessions of working memory."""

    noun, plural, family = "session", "sessions", WORKING.name

    def add_filter(self, parser: argparse.ArgumentParser) -> None:
        """Add the pattern of ids."""
        text = "only ids that match, such as 'order-*'"
        parser.add_argument("pattern", nargs="?", default="*", metavar="GLOB", help=text)

    def add_name(self, parser: argparse.ArgumentParser) -> None:
        """Add the id."""
        parser.add_argument("session", metavar="SESSION", help="the session's id")

    def name(self, arguments: argparse.Namespace) -> str:
        """Return the id."""
        return sanitize_line(f"session {arguments.session}")

    async def page(self, inspector: Inspector, arguments: argparse.Namespace) -> Page[Any]:
        """Read a page of sessions."""
        return await collect(partial(inspector.sessions, pattern=arguments.pattern), arguments.limit, arguments.cursor)

    def columns(self, arguments: argparse.Namespace) -> Sequence[Column]:
        """Return the columns of sessions."""
        return (Column("session", "bold"), *_numbers("variables", "size", "age"))

    def cells(self, row: SessionRow, clock: Clock) -> Sequence[str]:
        """Return the cells of a session."""
        age = "" if row.updated_at is None else clock.age(row.updated_at)
        return (row.session_id, f"{row.variables:,}", format_size(row.size_bytes), age)

    async def find(self, inspector: Inspector, arguments: argparse.Namespace) -> Any:
        """Read a session."""
        return await inspector.session(arguments.session)

    async def delete(self, inspector: Inspector, arguments: argparse.Namespace) -> bool:
        """End a session."""
        operations = WorkingOperations(inspector.config)
        address = calls.Address(inspector.config.tenant, arguments.session)
        call = calls.Call("end", address, (calls.End(),), token=os.urandom(16))
        reply = await inspector.database.asynchronous.run(operations.execute(call), operations.schema, "validate")
        return bool(reply.results[0])


def _numbers(*titles: str) -> Sequence[Column]:
    return [Column(title, right=True, whole=True) for title in titles]


def add_memories(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``memories``."""
    _add(parser, Memories())


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``session``."""
    _add(parser, Sessions())


def _add(parser: argparse.ArgumentParser, records: Records) -> None:
    """Add the three subcommands."""
    ways = parser.add_subparsers(title="commands", required=True, metavar="list|show|delete")
    listing = ways.add_parser("list", help=f"list {records.plural}", allow_abbrev=False)
    records.add_filter(listing)
    add_limit(listing, 20)
    listing.add_argument("--cursor", metavar="CURSOR", help="continue a list where the last page ended")
    showing = ways.add_parser("show", help=f"show a {records.noun} with its content", allow_abbrev=False)
    records.add_name(showing)
    deleting = ways.add_parser("delete", help=f"delete a {records.noun}, after confirmation", allow_abbrev=False)
    records.add_name(deleting)
    deleting.add_argument("--yes", action="store_true", help="delete without confirmation; required without a terminal")
    for one, run in ((listing, _list), (showing, _show), (deleting, _delete)):
        one.set_defaults(run_records=run, records=records, family=records.family)
        add_connection(one)
        add_tenant(one, records.plural)
        add_prefix(one)
        add_output(one)


def run_records(arguments: argparse.Namespace) -> int:
    """Run a subcommand."""
    return int(arguments.run_records(arguments, arguments.records))


def _list(arguments: argparse.Namespace, records: Records) -> int:
    """List records; 1 without any."""
    clock = Clock(arguments)
    page = look(arguments, lambda inspector: records.page(inspector, arguments))
    if arguments.json:
        write_json({"records": page.items, "cursor": page.cursor})
    elif page.items:
        screen = Screen()
        screen.table(records.columns(arguments), [records.cells(row, clock) for row in page.items])
        if page.cursor is not None:
            screen.line(Segment(f"There are more: --cursor {page.cursor}", "dim"))
    else:
        notify(f"There is no {records.noun} here.")
    return OK if page.items else FAILED


def _show(arguments: argparse.Namespace, records: Records) -> int:
    """Show a record."""
    found = look(arguments, lambda inspector: _existing(inspector, arguments, records))
    if arguments.json:
        write_json(found)
        return OK
    screen = Screen()
    screen.line(Segment(records.name(arguments), "bold"))
    for name, value in as_json(found).items():
        _show_field(screen, name, value)
    return OK


async def _existing(inspector: Inspector, arguments: argparse.Namespace, records: Records) -> Any:
    """Return the record that the arguments name.

    Raises:
        NotFound: There is none.
    """
    found = await records.find(inspector, arguments)
    if found is None:
        raise NotFound(f"There is no {records.name(arguments)} of tenant {inspector.config.tenant!r}.")
    return found


def _show_field(screen: Screen, name: str, value: Any) -> None:
    """Show a field: a short value beside its name, other values below it."""
    if isinstance(value, dict | list) and value:
        screen.line(Segment(f"{name}:", "dim"))
        screen.block(json_text(value, indent=2))
    elif value not in (None, {}, []):
        screen.line(Segment(f"{name}: ", "dim"), value if isinstance(value, str) else json_text(value))


def _delete(arguments: argparse.Namespace, records: Records) -> int:
    """Delete a record: 1 if it does not exist or the answer was no; 2 without a terminal."""
    what = records.name(arguments)
    look(arguments, lambda inspector: _existing(inspector, arguments, records), shows=False)
    refused = confirm(what, agreed=arguments.yes)
    if refused is not None:
        return refused
    removed = look(arguments, lambda inspector: records.delete(inspector, arguments), shows=False)
    if arguments.json:
        write_json({"deleted": removed})
    else:
        notify(f"Deleted {what}." if removed else "It had been deleted already.")
    return OK if removed else FAILED
