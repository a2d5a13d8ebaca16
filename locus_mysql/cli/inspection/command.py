"""Code shared by the inspection commands: arguments, running an inspector, finding threads, times, ages and sizes."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...config import MySQLConfig
from ...engine.retry import Backoff
from ...errors import InvalidInput, NotFound, SchemaMismatch, UsageError
from ...families.inspection.records import CheckpointRow, Page, ThreadRow, Window
from ...families.registry import families, find_family
from ...inspection.inspector import Inspector
from ..arguments import FAILED, WRONG, WrongArgument, add_connection, add_prefix, add_tenant, notify, options_of
from ..tables import add_family, existing_families, without_tables
from .screen import Segment, need_rich

T = TypeVar("T")

#: The largest page.
PAGE = 1_000

#: The smallest width of a terminal on which lists show times beside ages.
ROOM_FOR_TIMES = 72

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

_AGO = re.compile(r"(?:[0-9]+[smhdw])+")

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?")

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?", re.IGNORECASE)

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

TIME_HELP = "3:12, 2026-11-22 03:12, an ISO time with its zone, or an age such as 90s, 15m, 2h30m, 3d"


def add_inspection(parser: argparse.ArgumentParser, *, all_families: bool = False) -> None:
    """Add the arguments that select tables and the form of the output.

    Args:
        parser: The parser of the command.
        all_families: Whether the command also supports families without threads.
    """
    add_connection(parser)
    add_tenant(parser, "threads")
    add_prefix(parser)
    add_family(parser, [family for family in families() if all_families or family.holds_threads])
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select the form of the output."""
    parser.add_argument(
        "--tz",
        metavar="ZONE",
        default="UTC",
        help="the time zone: UTC (default), local, or a name such as Europe/Berlin",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs; does not need rich")


def add_thread(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a thread."""
    parser.add_argument("thread", metavar="THREAD", help="the thread's id")


def add_namespace(parser: argparse.ArgumentParser) -> None:
    """Add ``--namespace``, of a graph."""
    parser.add_argument("--namespace", default="", metavar="NS", help="the checkpoint namespace of a subgraph")


class Clock:
    """The time at which a command runs, and how it reads and prints times.

    Args:
        arguments: The arguments of the command; ``tz`` is the time zone.
        now: The current time.

    Raises:
        WrongArgument: There is no such zone.
    """

    def __init__(self, arguments: argparse.Namespace, now: datetime | None = None) -> None:
        self.zone = _zone_of(arguments.tz)
        self.now = now or datetime.now(UTC)

    def moment(self, text: str) -> datetime:
        """Return the moment that a text names.

        Args:
            text: A time of day, which means its last occurrence; a date, with or without a time; or an age.

        Raises:
            WrongArgument: The text cannot be parsed.
        """
        text = text.strip()
        if _AGO.fullmatch(text):
            seconds = sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"([0-9]+)([smhdw])", text))
            try:
                return self.now - timedelta(seconds=seconds)
            except OverflowError:
                raise WrongArgument(f"{text[:60]} ago is before the year 1. Write a smaller age.") from None
        try:
            if clock := _CLOCK.fullmatch(text):
                hour, minute, second, fraction = clock.groups(default="0")
                at = time(int(hour), int(minute), int(second), int(fraction.ljust(6, "0")))
                today = self.now.astimezone(self.zone).date()
                moment = self._in_zone(datetime.combine(today, at))
                return moment if moment <= self.now else self._in_zone(datetime.combine(today - timedelta(days=1), at))
            found = datetime.fromisoformat(text)
            return (found if found.tzinfo else self._in_zone(found)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise WrongArgument(f"The time {text[:60]!r} cannot be understood. Write {TIME_HELP}.") from None

    def time_text(self, moment: datetime) -> str:
        """Return a time to the second, without its zone."""
        return moment.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S")

    def zoned(self, moment: datetime) -> str:
        """Return a time with its zone and its age."""
        zone = moment.astimezone(self.zone).tzname() or ""
        return f"{self.time_text(moment)} {zone}, {self.age(moment)} ago"

    def heading(self, title: str) -> str:
        """Return the heading of a column of times."""
        return f"{title} ({self.now.astimezone(self.zone).tzname() or ''})"

    def age(self, moment: datetime) -> str:
        """Return the age of a moment in one unit: ``42s``, ``5m``, ``3h``, ``12d``, ``2y``."""
        seconds = max(0, (self.now - moment).total_seconds())
        for unit, length, limit in (("s", 1, 60), ("m", 60, 3_600), ("h", 3_600, 86_400), ("d", 86_400, 63_072_000)):
            if seconds < limit:
                return f"{int(seconds // length)}{unit}"
        return f"{int(seconds // 31_536_000)}y"

    def _in_zone(self, naive: datetime) -> datetime:
        return (naive.replace(tzinfo=self.zone) if self.zone is not None else naive.astimezone()).astimezone(UTC)


def _zone_of(name: str) -> tzinfo | None:
    """Return a time zone by its name; None for that of this machine."""
    if name.casefold() in {"utc", "local"}:
        return UTC if name.casefold() == "utc" else None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise WrongArgument(
            f"There is no time zone {name!r:.60}. Give UTC, local, or a name such as Europe/Berlin."
        ) from None


def config_of(arguments: argparse.Namespace) -> MySQLConfig:
    """Return the options of a command. Its calls create no tables."""
    return MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")


def look(arguments: argparse.Namespace, work: Callable[[Inspector], Awaitable[T]], *, shows: bool = True) -> T:
    """Run a function with an inspector.

    Args:
        arguments: Of the command.
        work: The function.
        shows: Whether the result is printed by `Screen`, unless as JSON.

    Raises:
        SetupError: Rich, which prints it, is not installed.
        WrongArgument: The inspector refuses an argument.
    """
    if shows and not arguments.json:
        need_rich()
    config = config_of(arguments)

    async def run() -> T:
        async with Inspector(config) as inspector:
            try:
                if getattr(arguments, "family", None) is not None:
                    await existing_families(inspector.database, arguments.family)
                return await work(inspector)
            except InvalidInput as error:
                raise WrongArgument(str(error)) from None

    return asyncio.run(run())


def confirm(what: str, *, agreed: bool) -> int | None:
    """Ask at the terminal whether to delete something.

    Args:
        what: Its description.
        agreed: Whether it need not be asked, as ``--yes`` was given.

    Returns:
        None if it is to be deleted, else the exit code.
    """
    if agreed:
        return None
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        notify(f"locus-mysql: Cannot ask whether to delete {what}: the input is not a terminal. Give --yes.")
        return WRONG
    print(f"Delete {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().casefold() in {"y", "yes"}:
        return None
    notify("Nothing was deleted.")
    return FAILED


async def families_of(inspector: Inspector, asked: str | None, *, all_families: bool = False) -> list[str]:
    """Return the families to inspect: the named one, or all whose tables exist.

    Args:
        inspector: The inspector.
        asked: A family's name; None for all.
        all_families: Whether the command also supports families without threads.

    Raises:
        SchemaMismatch: No tables exist.
    """
    if asked is not None:
        return [asked]
    existing = [name for name in await inspector.families() if all_families or find_family(name).holds_threads]
    if not existing:
        kind = "" if all_families else " of threads"
        raise SchemaMismatch(await without_tables(inspector.database, None, kind))
    return existing


async def find_thread(inspector: Inspector, thread_id: str, asked: str | None) -> ThreadRow:
    """Return the thread of an id.

    Raises:
        NotFound: There is none.
        UsageError: Several families have one.
    """
    families = await families_of(inspector, asked)
    found = [row for family in families if (row := await inspector.thread(family, thread_id)) is not None]
    if not found:
        raise NotFound(
            f"There is no thread {thread_id!r:.200} of tenant {inspector.config.tenant!r} in {' or '.join(families)}. "
            "The command threads lists those that exist."
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
    """Return the newest checkpoint that a thread had at a moment.

    Raises:
        NotFound: It had no checkpoint yet.
    """
    view = await inspector.state(thread.family, thread.thread_id, namespace=namespace, at=moment, window=Window(1))
    if view is None:
        raise NotFound(
            f"Thread {thread.thread_id!r:.200} has no checkpoint that was saved by {clock.zoned(moment)}. Its first "
            f"save was {clock.zoned(thread.created_at)}; older checkpoints may have been removed."
        )
    return view.checkpoint


async def named(inspector: Inspector, thread: ThreadRow, checkpoint_id: str, namespace: str) -> CheckpointRow:
    """Return a checkpoint by its id, or by a prefix that only one id has.

    Raises:
        NotFound: There is none.
        UsageError: Several ids have this prefix.
    """
    begin: dict[str, CheckpointRow] = {}

    def read(cursor: str | None) -> Awaitable[Page[CheckpointRow]]:
        return inspector.history(thread.family, thread.thread_id, limit=PAGE, cursor=cursor)

    async for page in pages(read):
        for row in page.items:
            if namespace and row.namespace != namespace:
                continue
            if row.checkpoint_id == checkpoint_id:
                return row
            if row.checkpoint_id.startswith(checkpoint_id):
                begin.setdefault(row.checkpoint_id, row)
    if len(begin) > 1:
        some = ", ".join(list(begin)[:3])
        raise UsageError(f"{len(begin)} checkpoints begin with {checkpoint_id!r:.140}: {some}, … Give more of the id.")
    if not begin:
        raise NotFound(
            f"Thread {thread.thread_id!r:.200} has no checkpoint {checkpoint_id!r:.140}. The command history lists "
            "those that it has."
        )
    return next(iter(begin.values()))


def of_checkpoint(row: CheckpointRow, clock: Clock) -> Sequence[Segment | str]:
    """Return a line that describes a checkpoint, as its parts."""
    where = f" in {row.namespace}" if row.namespace else ""
    return (Segment(row.checkpoint_id, "yellow"), f"{where}  ", Segment(clock.zoned(row.created_at), "dim"))


async def pages(read: Callable[[str | None], Awaitable[Page[T]]], cursor: str | None = None) -> AsyncIterator[Page[T]]:
    """Yield pages until the last one.

    Args:
        read: Returns the page that a cursor names.
        cursor: The cursor of the first page.

    Raises:
        Unavailable: For a minute, each page named itself as the next one.
    """
    backoff = Backoff("A page of a list named itself as the next one")
    while True:
        page = await read(cursor)
        yield page
        cursor = page.cursor
        if cursor is None:
            return
        backoff.compare(cursor)


async def collect(read: Callable[..., Awaitable[Page[T]]], limit: int, cursor: str | None) -> Page[T]:
    """Return entries of a list as one page.

    Args:
        read: Returns a page, from its ``limit`` and ``cursor``.
        limit: The maximum number of entries.
        cursor: The cursor of the first page.
    """
    entries: list[T] = []

    def read_next(after: str | None) -> Awaitable[Page[T]]:
        return read(limit=min(limit - len(entries), PAGE), cursor=after)

    async for page in pages(read_next, cursor):
        entries += page.items
        if len(entries) == limit:
            break
    return Page(entries, page.cursor)


def format_size(size_bytes: float) -> str:
    """Return bytes in decimal units: ``812 B``, ``4.5 KB``, ``120 MB``."""
    size = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if abs(size) < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or abs(size) >= 99.95 else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} TB"


def size_of(text: str) -> int:
    """Return the number of bytes of a text such as ``10KB``.

    Raises:
        WrongArgument: The text cannot be parsed.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise WrongArgument(f"The size {text[:60]!r} cannot be understood. Write bytes, or such as 10KB, 1.5MB, 2GB.")
    number, unit = found.groups()
    return int(float(number) * 1_000 ** _POWERS[unit.casefold()])
