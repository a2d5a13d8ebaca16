"""``memories`` and ``session``: commands of families without threads, each with ``list``, ``show`` and ``delete``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...engine.operation import drive_awaited
from ...errors import NotFound
from ...families.inspection.records import Page
from ...families.memories.family import MEMORIES
from ...families.memories.operations import MemoryOperations
from ...families.working import calls
from ...families.working.family import WORKING
from ...families.working.storages.mysql import WorkingOperations
from ...inspection.inspector import Inspector
from ...runtime.arguments import tenant_of
from ..arguments import FAILED, OK, add_connection, add_limit, add_prefix, add_tenant, notify, sanitize_line
from .command import Clock, add_output, collect, confirm, format_size, look
from .screen import Column, Screen, Segment, as_json, json_text, number, write_json


class Records(NamedTuple):
    """A kind of record, for the three subcommands.

    Args:
        noun: Its singular noun.
        plural: Its plural noun.
        family: The name of the family.
        filters: The arguments that select records of a list.
        names: The arguments that name one record.
        name: Returns the description of a record from these arguments.
        page: Reads the page of a list that the arguments select.
        columns: Returns the columns of a list.
        find: Reads a record; None if it does not exist.
        delete: Deletes a record; returns whether it existed.
    """

    noun: str
    plural: str
    family: str
    filters: Mapping[str, Mapping[str, Any]]
    names: Mapping[str, Mapping[str, Any]]
    name: Callable[[argparse.Namespace], str]
    page: Callable[[Inspector, argparse.Namespace], Awaitable[Page[Any]]]
    columns: Callable[[argparse.Namespace, Clock], Sequence[Column]]
    find: Callable[[Inspector, argparse.Namespace], Awaitable[Any]]
    delete: Callable[[Inspector, argparse.Namespace], Awaitable[bool]]


def _page_of_memories(inspector: Inspector, arguments: argparse.Namespace) -> Awaitable[Page[Any]]:
    """Read a page of items; without a namespace, one of namespaces."""
    read: Any = partial(inspector.items, arguments.namespace) if arguments.namespace else inspector.namespaces
    return collect(read, arguments.limit, arguments.cursor)


def _columns_of_memories(arguments: argparse.Namespace, clock: Clock) -> Sequence[Column]:
    items = Column("item", lambda row: row.key, "bold"), Column("value", lambda row: row.preview[:80])
    namespaces = (
        Column("namespace", lambda row: " / ".join(row.namespace), "bold"),
        number("items", lambda row: f"{row.items:,}"),
    )
    return *(items if arguments.namespace else namespaces), *_size_and_age(clock)


def _size_and_age(clock: Clock) -> Sequence[Column]:
    return (
        number("size", lambda row: format_size(row.size_bytes)),
        number("age", lambda row: "" if row.updated_at is None else clock.age(row.updated_at)),
    )


async def _delete_memory(inspector: Inspector, arguments: argparse.Namespace) -> bool:
    operations = MemoryOperations(inspector.config.model_copy(update={"search": False}))

    async def run(operation: Any) -> Any:
        return await inspector.database.asynchronous.run(operation, operations.schema, "validate")

    return bool(await drive_awaited(operations.delete(arguments.namespace, arguments.key), run))


_MEMORIES = Records(
    noun="memory",
    plural="memories",
    family=MEMORIES.name,
    filters={
        "--namespace": {
            "nargs": "+",
            "default": [],
            "metavar": "LABEL",
            "help": "the items of exactly this namespace; without it, the namespaces",
        }
    },
    names={
        "key": {"metavar": "KEY", "help": "the item's key"},
        "--namespace": {"nargs": "+", "required": True, "metavar": "LABEL", "help": "the item's namespace"},
    },
    name=lambda arguments: sanitize_line(f"item {arguments.key} in {' / '.join(arguments.namespace)}"),
    page=_page_of_memories,
    columns=_columns_of_memories,
    find=lambda inspector, arguments: inspector.item(arguments.namespace, arguments.key),
    delete=_delete_memory,
)


async def _end_session(inspector: Inspector, arguments: argparse.Namespace) -> bool:
    operations = WorkingOperations(inspector.config)
    address = calls.Address(tenant_of(inspector.config), arguments.session)
    call = calls.Call("end", address, (calls.End(),), token=os.urandom(16))
    reply = await inspector.database.asynchronous.run(operations.execute(call), operations.schema, "validate")
    return bool(reply.results[0])


_SESSIONS = Records(
    noun="session",
    plural="sessions",
    family=WORKING.name,
    filters={
        "pattern": {"nargs": "?", "default": "*", "metavar": "GLOB", "help": "only ids that match, such as 'order-*'"}
    },
    names={"session": {"metavar": "SESSION", "help": "the session's id"}},
    name=lambda arguments: sanitize_line(f"session {arguments.session}"),
    page=lambda inspector, arguments: collect(
        partial(inspector.sessions, pattern=arguments.pattern), arguments.limit, arguments.cursor
    ),
    columns=lambda _, clock: (
        Column("session", lambda row: row.session_id, "bold"),
        number("variables", lambda row: f"{row.variables:,}"),
        *_size_and_age(clock),
    ),
    find=lambda inspector, arguments: inspector.session(arguments.session),
    delete=_end_session,
)


def add_memories(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``memories``."""
    _add(parser, _MEMORIES)


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``session``."""
    _add(parser, _SESSIONS)


def _add_arguments(parser: argparse.ArgumentParser, arguments: Mapping[str, Mapping[str, Any]]) -> None:
    for name, options in arguments.items():
        parser.add_argument(name, **options)


def _add(parser: argparse.ArgumentParser, records: Records) -> None:
    """Add the three subcommands."""
    ways = parser.add_subparsers(title="commands", required=True, metavar="list|show|delete")
    listing = ways.add_parser("list", help=f"list {records.plural}", allow_abbrev=False)
    _add_arguments(listing, records.filters)
    add_limit(listing, 20)
    listing.add_argument("--cursor", metavar="CURSOR", help="continue a list where the last page ended")
    showing = ways.add_parser("show", help=f"show a {records.noun} with its content", allow_abbrev=False)
    _add_arguments(showing, records.names)
    deleting = ways.add_parser("delete", help=f"delete a {records.noun}, after confirmation", allow_abbrev=False)
    _add_arguments(deleting, records.names)
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
        screen.table(records.columns(arguments, clock), page.items)
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
