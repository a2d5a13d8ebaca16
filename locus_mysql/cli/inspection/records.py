"""The commands of families without threads, ``memories`` and ``session``: each has ``list``, ``show`` and ``delete``.

`Records` describes what they do for one kind of record; `memories` and `session` give one each.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ...errors import NotFound
from ...families.inspection.records import Page
from ...inspection.inspector import Inspector
from ..arguments import FAILED, OK, add_connection, add_limit, add_prefix, add_tenant, notify
from .command import Clock, add_output, confirm, look
from .screen import Column, Screen, Segment, as_json, json_text, write_json


class Records(NamedTuple):
    """A kind of record.

    Args:
        noun: Its singular noun.
        owner: The noun of the help of ``--tenant``.
        family: The name of the family.
        add_filter: Adds the arguments that select records of a list.
        add_name: Adds the arguments that name one record.
        name: Returns the description of a record from these arguments.
        page: Reads a page: inspector, arguments, cursor.
        columns: Returns the columns of a list.
        cells: Returns the cells of a record in a list.
        find: Reads a record; None if it does not exist.
        delete: Deletes a record; returns whether it existed.
    """

    noun: str
    owner: str
    family: str
    add_filter: Callable[[argparse.ArgumentParser], None]
    add_name: Callable[[argparse.ArgumentParser], None]
    name: Callable[[argparse.Namespace], str]
    page: Callable[[Inspector, argparse.Namespace, str | None], Awaitable[Page[Any]]]
    columns: Callable[[argparse.Namespace, Clock], Sequence[Column]]
    cells: Callable[[Any, Clock], Sequence[str]]
    find: Callable[[Inspector, argparse.Namespace], Awaitable[Any]]
    delete: Callable[[Inspector, argparse.Namespace], Awaitable[bool]]


def add_records(parser: argparse.ArgumentParser, records: Records) -> None:
    """Add the three subcommands."""
    ways = parser.add_subparsers(title="commands", required=True, metavar="list|show|delete")
    listing = ways.add_parser("list", help=f"list {records.owner}", allow_abbrev=False)
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
        add_tenant(one, records.owner)
        add_prefix(one)
        add_output(one)


def run_records(arguments: argparse.Namespace) -> int:
    """Run a subcommand."""
    return int(arguments.run_records(arguments, arguments.records))


def _list(arguments: argparse.Namespace, records: Records) -> int:
    """List records; 1 without any."""
    clock = Clock(arguments)
    page = look(arguments, lambda inspector: records.page(inspector, arguments, arguments.cursor))
    if arguments.json:
        write_json({"records": page.items, "cursor": page.cursor})
    elif page.items:
        screen = Screen()
        screen.table(records.columns(arguments, clock), [records.cells(row, clock) for row in page.items])
        if page.cursor is not None:
            screen.line(Segment(f"There are more: --cursor {page.cursor}", "dim"))
    else:
        notify(f"There is no {records.noun} here.")
    return OK if page.items else FAILED


def _show(arguments: argparse.Namespace, records: Records) -> int:
    """Show a record."""
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> Any:
        found = await records.find(inspector, arguments)
        if found is None:
            raise NotFound(f"There is no {records.name(arguments)} of tenant {inspector.config.tenant!r}.")
        return found

    found = look(arguments, find)
    if arguments.json:
        write_json(found)
        return OK
    screen = Screen()
    screen.line(Segment(records.name(arguments), "bold"))
    for name, value in as_json(found).items():
        _show_field(screen, name, value, clock)
    return OK


def _show_field(screen: Screen, name: str, value: Any, clock: Clock) -> None:
    """Show a field: a short value beside its name, other values below it."""
    if isinstance(value, dict | list) and value:
        screen.line(Segment(f"{name}:", "dim"))
        screen.block(json_text(value, indent=2))
    elif value not in (None, {}, []):
        screen.line(Segment(f"{name}: ", "dim"), value if isinstance(value, str) else json_text(value))


def _delete(arguments: argparse.Namespace, records: Records) -> int:
    """Delete a record: 1 if it does not exist or the answer was no; 2 without a terminal."""
    what = records.name(arguments)

    async def check(inspector: Inspector) -> None:
        if await records.find(inspector, arguments) is None:
            raise NotFound(f"There is no {what} of tenant {inspector.config.tenant!r}.")

    look(arguments, check, shows=False)
    refused = confirm(what, agreed=arguments.yes)
    if refused is not None:
        return refused
    removed = look(arguments, lambda inspector: records.delete(inspector, arguments), shows=False)
    if arguments.json:
        write_json({"deleted": removed})
    else:
        notify(f"Deleted {what}." if removed else "It had been deleted already.")
    return OK if removed else FAILED
