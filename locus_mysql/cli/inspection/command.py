"""What the commands share: their arguments, the inspector they ask, and finding the thread that is meant."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar, cast

from ...config import MySQLConfig
from ...errors import InvalidInput, NotFound, SchemaMismatch, UsageError
from ...inspection.inspector import Inspector
from ...inspection.records import CheckpointRow, ThreadFamily, ThreadRow, Window
from ..arguments import (
    WrongArgument,
    add_connection,
    add_prefix,
    add_tenant,
    options_of,
)
from ..tables import THREADED, add_family
from .measures import age, moment_of, told_time, zone_name, zone_of
from .screen import Said, need_rich

T = TypeVar("T")

#: What is asked for at a time, at most.
PAGE = 1_000

#: On a terminal that is narrower, lists have no room for times beside the ages.
ROOM_FOR_TIMES = 72


def add_looking(parser: argparse.ArgumentParser) -> None:
    """Where to look, and how to show it."""
    add_connection(parser)
    add_tenant(parser, "threads")
    add_prefix(parser)
    add_family(parser, THREADED, scoped=False)
    parser.add_argument(
        "--tz", metavar="ZONE", default="UTC", help="the zone of times: UTC (default), local, or such as Europe/Berlin"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, for programs; needs no rich")


def add_thread(parser: argparse.ArgumentParser) -> None:
    """Which thread."""
    parser.add_argument("thread", metavar="THREAD", help="the thread's id")


def add_namespace(parser: argparse.ArgumentParser) -> None:
    """Which namespace of a graph."""
    parser.add_argument("--namespace", default="", metavar="NS", help="the checkpoint namespace of a subgraph")


class Clock:
    """The time of one command, and how it reads and shows others.

    Args:
        arguments: Tell the zone.
        now: The present.
    """

    def __init__(self, arguments: argparse.Namespace, now: datetime | None = None) -> None:
        self.zone = zone_of(arguments.tz)
        self.now = now or datetime.now(UTC)

    def moment(self, text: str) -> datetime:
        """The moment that an argument names."""
        return moment_of(text, self.now, self.zone)

    def told(self, moment: datetime) -> str:
        """A time to the second."""
        return told_time(moment, self.zone)

    def zoned(self, moment: datetime) -> str:
        """A time with its zone and its age."""
        return f"{self.told(moment)} {zone_name(moment, self.zone)}, {self.age(moment)} ago"

    def heading(self, title: str) -> str:
        """What stands above a column of times."""
        return f"{title} ({zone_name(self.now, self.zone)})"

    def age(self, moment: datetime) -> str:
        """How long ago that was."""
        return age(moment, self.now)


def config_of(arguments: argparse.Namespace) -> MySQLConfig:
    """The options of a command, which makes no tables."""
    return MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")


def look(arguments: argparse.Namespace, work: Callable[[Inspector], Awaitable[T]], *, shows: bool = True) -> T:
    """Do something with an inspector.

    Args:
        arguments: Of the command.
        work: What to do.
        shows: Whether what is found will be shown on a screen, unless as JSON.

    Raises:
        SetupError: It could not be shown, as rich is missing.
        WrongArgument: The inspector does not take what an argument says.
    """
    if shows and not arguments.json:
        need_rich()
    config = config_of(arguments)

    async def run() -> T:
        async with Inspector(config) as inspector:
            try:
                return await work(inspector)
            except InvalidInput as error:
                raise WrongArgument(str(error)) from None

    return asyncio.run(run())


async def families_of(inspector: Inspector, asked: str | None) -> list[ThreadFamily]:
    """The families of threads that are meant: the one that was asked for, or all whose tables are there.

    Raises:
        SchemaMismatch: There are none.
    """
    if asked is not None:
        return [cast(ThreadFamily, asked)]
    there = [cast(ThreadFamily, family) for family in await inspector.families() if family in THREADED]
    if not there:
        config = inspector.config
        raise SchemaMismatch(
            f"Database {config.database!r} has no tables of threads with prefix {config.table_prefix!r}: nothing was "
            "saved there yet, or with another --prefix. The first save makes the tables."
        )
    return there


async def find_thread(inspector: Inspector, thread_id: str, asked: str | None) -> ThreadRow:
    """The thread of an id.

    Raises:
        NotFound: There is none.
        UsageError: Several families have one.
    """
    families = await families_of(inspector, asked)
    found = [row for family in families if (row := await inspector.thread(family, thread_id)) is not None]
    if not found:
        raise NotFound(
            f"There is no thread {thread_id!r:.200} of tenant {inspector.config.tenant!r} in {' or '.join(families)}. "
            "The command threads lists what there is."
        )
    if len(found) > 1:
        raise UsageError(
            f"There are threads {thread_id!r:.200} in {' and '.join(row.family for row in found)}. Choose one with "
            "--family."
        )
    return found[0]


async def checkpoint_at(
    inspector: Inspector, thread: ThreadRow, moment: datetime, namespace: str, clock: Clock
) -> CheckpointRow:
    """The newest checkpoint that a thread had at a moment.

    Raises:
        NotFound: It had none yet.
    """
    view = await inspector.state(thread.family, thread.thread_id, namespace=namespace, at=moment, window=Window(1))
    if view is None:
        raise NotFound(
            f"Thread {thread.thread_id!r:.200} has no checkpoint that was saved by {clock.zoned(moment)}. Its first "
            f"save was {clock.zoned(thread.created_at)}; older checkpoints may have been removed."
        )
    return view.checkpoint


async def named(inspector: Inspector, thread: ThreadRow, checkpoint_id: str, namespace: str) -> CheckpointRow:
    """A checkpoint by its id, or by its beginning, as long as only one begins so.

    Raises:
        NotFound: There is none.
        UsageError: Several begin so.
    """
    cursor: str | None = None
    begin: dict[str, CheckpointRow] = {}
    while True:
        page = await inspector.history(thread.family, thread.thread_id, limit=PAGE, cursor=cursor)
        for row in page.items:
            if namespace and row.namespace != namespace:
                continue
            if row.checkpoint_id == checkpoint_id:
                return row
            if row.checkpoint_id.startswith(checkpoint_id):
                begin.setdefault(row.checkpoint_id, row)
        cursor = page.cursor
        if cursor is None:
            break
    if len(begin) > 1:
        some = ", ".join(list(begin)[:3])
        raise UsageError(f"{len(begin)} checkpoints begin with {checkpoint_id!r:.140}: {some}, … Give more of the id.")
    if not begin:
        raise NotFound(
            f"Thread {thread.thread_id!r:.200} has no checkpoint {checkpoint_id!r:.140}. The command history lists "
            "those that it has."
        )
    return next(iter(begin.values()))


def of_checkpoint(row: CheckpointRow, clock: Clock) -> Sequence[Said | str]:
    """A checkpoint in a line."""
    where = f" in {row.namespace}" if row.namespace else ""
    return (Said(row.checkpoint_id, "yellow"), f"{where}  ", Said(clock.zoned(row.created_at), "dim"))
