"""``threads``: lists the threads saved to last, with their age, number of checkpoints and size."""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Sized
from typing import Any

from ...families.inspection.records import Page, ThreadRow
from ...families.registry import find_family
from ...inspection.inspector import Inspector
from ..arguments import FAILED, OK, WrongArgument, add_limit, notify
from ..pages import pages
from .command import PAGE, ROOM_FOR_TIMES, Clock, add_inspection, families_of, look
from .measures import TIME_HELP, format_size, size_of
from .screen import Column, Screen, Segment, write_json


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``threads``."""
    parser.add_argument(
        "pattern", nargs="?", default="*", metavar="GLOB", help="only ids that match, such as 'user-1*'"
    )
    add_limit(parser, 20)
    parser.add_argument(
        "--metadata", metavar="KEY=VALUE", help="only threads whose newest checkpoint has this metadata"
    )
    parser.add_argument("--min-size", metavar="SIZE", help="only threads of at least this size, such as 100KB")
    parser.add_argument("--since", metavar="TIME", help=f"only threads last saved at this time or later: {TIME_HELP}")
    parser.add_argument("--until", metavar="TIME", help="only threads last saved before this time")
    parser.add_argument("--cursor", metavar="CURSOR", help="continue a list where the last page ended; needs --family")
    add_inspection(parser)


def threads(arguments: argparse.Namespace) -> int:
    """List threads, newest first; 1 without any."""
    if arguments.cursor is not None and arguments.family is None:
        raise WrongArgument("A cursor belongs to one family. Give the --family with which the list was made.")
    clock = Clock(arguments)
    wanted: dict[str, Any] = {
        "pattern": arguments.pattern,
        "metadata": None if arguments.metadata is None else pair_of(arguments.metadata),
        "min_bytes": None if arguments.min_size is None else size_of(arguments.min_size),
        "saved_after": None if arguments.since is None else clock.moment(arguments.since),
        "saved_before": None if arguments.until is None else clock.moment(arguments.until),
    }

    async def find(inspector: Inspector) -> tuple[Page[ThreadRow], bool]:
        found: list[ThreadRow] = []
        ends: list[str | None] = []
        families = await families_of(inspector, arguments.family)
        for family in families:
            rows: list[ThreadRow] = []

            def read(cursor: str | None, family: str = family, rows: Sized = rows) -> Awaitable[Page[ThreadRow]]:
                limit = min(arguments.limit - len(rows), PAGE)
                return inspector.threads(family, limit=limit, cursor=cursor, **wanted)

            async for page in pages(read, arguments.cursor):
                rows += page.items
                if len(rows) == arguments.limit:
                    break
            found += rows
            ends.append(page.cursor)
        found.sort(key=lambda row: row.updated_at, reverse=True)
        more = any(ends) or len(found) > arguments.limit
        return Page(found[: arguments.limit], ends[0] if len(ends) == 1 else None), more

    page, more = look(arguments, find)
    if arguments.json:
        write_json({"threads": page.items, "cursor": page.cursor, "more": more})
    elif page.items:
        _show(Screen(), page, clock, more=more)
    else:
        notify("No thread matches.")
    return OK if page.items else FAILED


def pair_of(text: str) -> tuple[str, Any]:
    """Return the key and the value of an argument: the value is parsed as JSON if it is JSON, else it is text.

    Raises:
        WrongArgument: It has no ``=``.
    """
    key, given, value = text.partition("=")
    if not given:
        raise WrongArgument(f"Metadata must be KEY=VALUE, not {text[:80]!r}.")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


def _show(screen: Screen, page: Page[ThreadRow], clock: Clock, *, more: bool) -> None:
    several = len({row.family for row in page.items}) > 1
    times = not screen.terminal or screen.width >= ROOM_FOR_TIMES
    columns = [
        Column("thread", "bold"),
        *([Column("kind", whole=True)] if several else []),
        *([Column(clock.heading("saved"), whole=True)] if times else []),
        Column("age", right=True, whole=True),
        Column("saves", right=True, whole=True),
        Column("size", right=True, whole=True),
    ]
    rows = [
        [
            row.thread_id,
            *([find_family(row.family).title] if several else []),
            *([clock.time_text(row.updated_at)] if times else []),
            clock.age(row.updated_at),
            f"{row.checkpoints:,}",
            format_size(row.size_bytes),
        ]
        for row in page.items
    ]
    screen.table(columns, rows)
    for row in page.items:
        if row.damage is not None:
            screen.line(Segment("damaged: ", "red"), row.damage)
    if page.cursor is not None:
        screen.line(Segment(f"There are more: --family {page.items[0].family} --cursor {page.cursor}", "dim"))
    elif more:
        screen.line(Segment("There are more: raise -n, or list one family at a time with --family.", "dim"))
