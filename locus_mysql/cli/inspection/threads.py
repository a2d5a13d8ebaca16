"""``threads``, ``search``, ``stats`` and ``rm``: find threads and messages, measure what is stored, delete threads."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...errors import LocusMySQLError, NotFound
from ...families.inspection.records import CheckpointRow, Day, Hit, LargeThread, Page, Statistics, ThreadRow
from ...families.registry import changes_of, find_family
from ...inspection.inspector import Inspector
from ...records.maintenance import Counts, in_words
from ...wording import counted
from ..arguments import FAILED, OK, WrongArgument, add_limit, notify, sanitize_line
from ..tenants import stats_of_all
from .command import (
    ROOM_FOR_TIMES,
    TIME_HELP,
    Clock,
    add_inspection,
    add_namespace,
    add_thread,
    collect,
    confirm,
    families_of,
    find_thread,
    format_size,
    look,
    named,
    size_of,
)
from .screen import Column, Screen, Segment, number, write_json

#: Characters of the longest bar, and of the text beside it on a narrow terminal.
_BAR, _BESIDE = 30, 50


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
            read = partial(inspector.threads, family, **wanted)
            page = await collect(read, arguments.limit, arguments.cursor)
            found += page.items
            ends.append(page.cursor)
        found.sort(key=lambda row: row.updated_at, reverse=True)
        more = any(ends) or len(found) > arguments.limit
        return Page(found[: arguments.limit], ends[0] if len(ends) == 1 else None), more

    page, more = look(arguments, find)
    if arguments.json:
        write_json({"threads": page.items, "cursor": page.cursor, "more": more})
    elif page.items:
        _show_threads(Screen(), page, clock, more=more)
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


def _show_threads(screen: Screen, page: Page[ThreadRow], clock: Clock, *, more: bool) -> None:
    several = len({row.family for row in page.items}) > 1
    times = not screen.terminal or screen.width >= ROOM_FOR_TIMES
    columns = [
        Column("thread", lambda row: row.thread_id, "bold"),
        *([Column("kind", lambda row: find_family(row.family).title, whole=True)] if several else []),
        *([Column(clock.heading("saved"), lambda row: clock.time_text(row.updated_at), whole=True)] if times else []),
        number("age", lambda row: clock.age(row.updated_at)),
        number("saves", lambda row: f"{row.checkpoints:,}"),
        number("size", lambda row: format_size(row.size_bytes)),
    ]
    screen.table(columns, page.items)
    for row in page.items:
        if row.damage is not None:
            screen.line(Segment("damaged: ", "red"), row.damage)
    if page.cursor is not None:
        screen.line(Segment(f"There are more: --family {page.items[0].family} --cursor {page.cursor}", "dim"))
    elif more:
        screen.line(Segment("There are more: raise -n, or list one family at a time with --family.", "dim"))


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``search``."""
    parser.add_argument("words", nargs="+", metavar="WORD", help="the words to find; a phrase in double quotes")
    add_limit(parser, 20, " hits")
    add_inspection(parser)


def search(arguments: argparse.Namespace) -> int:
    """Show messages that contain words, best first; 1 without any."""
    query = " ".join(arguments.words)
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> list[Hit]:
        hits: list[Hit] = []
        families = await families_of(inspector, arguments.family)
        refused: list[str] = []
        for family in families:
            try:
                hits += await inspector.search(query, family=family, limit=arguments.limit)
            except LocusMySQLError as error:  # such as a family whose tables have no index
                refused.append(f"{family}: {error}")
                if len(refused) == len(families):  # no family could be searched
                    raise
        for one in refused:
            notify(one)
        hits.sort(key=lambda hit: (hit.score, hit.created_at), reverse=True)
        return hits[: arguments.limit]

    hits = look(arguments, find)
    if arguments.json:
        write_json({"hits": hits})
    elif hits:
        screen = Screen()
        words = _words(query)
        for hit in hits:
            _show_hit(screen, hit, words, clock)
    else:
        notify("No message contains these words.")
    return OK if hits else FAILED


def _words(query: str) -> re.Pattern[str]:
    """Return a pattern that matches the words of a query."""
    words = [re.escape(word) for word in query.replace('"', " ").split()]
    return re.compile("|".join(sorted(words, key=len, reverse=True)) or r"(?!)", re.IGNORECASE)


def _show_hit(screen: Screen, hit: Hit, words: re.Pattern[str], clock: Clock) -> None:
    beside = f"  {find_family(hit.family).title}  {clock.zoned(hit.created_at)}"
    screen.line(Segment(hit.thread_id, "bold"), Segment(beside, "dim"))
    screen.line("  ", Segment(hit.checkpoint_id, "yellow"))
    pieces: list[Segment | str] = ["  "]
    offset = 0
    for found in words.finditer(hit.snippet):
        pieces += [Segment(hit.snippet[offset : found.start()]), Segment(found.group(), "bold reverse")]
        offset = found.end()
    screen.line(*pieces, Segment(hit.snippet[offset:]))
    screen.line("")


def add_stats(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``stats``."""
    add_limit(parser, 10, " of large threads to list")
    parser.add_argument("--all-tenants", action="store_true", help="only the numbers of all tenants together")
    add_inspection(parser, all_families=True)


def stats(arguments: argparse.Namespace) -> int:
    """Show the statistics of each family."""
    if arguments.all_tenants:
        if arguments.tenant is not None:
            raise WrongArgument("--tenant and --all-tenants contradict each other. Give one of them.")
        return stats_of_all(arguments)
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> tuple[list[Statistics], dict[str, Counts]]:
        names = await families_of(inspector, arguments.family, all_families=True)
        found = [await inspector.statistics(name) for name in names if find_family(name).holds_threads]
        return found, {name: await inspector.stored(name) for name in names if not find_family(name).holds_threads}

    found, others = look(arguments, find)
    if arguments.json:
        stored = {name: {count.noun: count.number for count in counts} for name, counts in others.items()}
        write_json({"families": found, "stored": stored})
        return OK
    screen = Screen()
    for index, one in enumerate(found):
        if index:
            screen.line("")
        _show_statistics(screen, one, arguments.limit, clock)
    for name, counts in others.items():
        if found or name != next(iter(others)):
            screen.line("")
        screen.line(Segment(find_family(name).title, "bold"))
        screen.line(f"  {in_words(counts)}")
    return OK


def _show_statistics(screen: Screen, found: Statistics, limit: int, clock: Clock) -> None:
    screen.line(Segment(find_family(found.family).title, "bold"))
    screen.line(
        f"  {counted(found.threads, 'thread')}, {counted(found.checkpoints, find_family(found.family).unit)}, ",
        format_size(found.size_bytes),
    )
    if found.sampled is not None:
        screen.line(Segment(f"  (estimated from {counted(found.sampled, 'thread')})", "dim"))
    if found.whole_bytes is not None and found.whole_bytes > found.size_bytes:
        times = found.whole_bytes / max(found.size_bytes, 1)
        screen.line(
            Segment(f"  complete states would take {format_size(found.whole_bytes)}, {times:.1f} times as much", "dim")
        )
    if found.days:
        screen.line("")
        _show_days(screen, found.days)
    if found.largest:
        screen.line("")
        _show_largest(screen, found.largest[:limit], clock)


def _show_days(screen: Screen, days: Sequence[Day]) -> None:
    bar, room = "█" if screen.unicode else "#", max(0, min(_BAR, screen.width - _BESIDE))
    most = max(day.checkpoints for day in days) or 1
    columns = [
        Column("day (UTC)", lambda day: day.day, whole=True),
        number("threads", lambda day: f"{day.threads:,}"),
        number("saves", lambda day: f"{day.checkpoints:,}"),
        number("added", lambda day: format_size(day.size_bytes)),
        Column("", lambda day: bar * -(-day.checkpoints * room // most), "cyan", whole=True),
    ]
    screen.table(columns, days)


def _show_largest(screen: Screen, largest: Sequence[LargeThread], clock: Clock) -> None:
    columns = [
        Column("largest threads", lambda large: large.thread.thread_id, "bold"),
        number("size", lambda large: format_size(large.thread.size_bytes)),
        number("grows by", _growth),
        number("saves", lambda large: f"{large.thread.checkpoints:,}"),
        number("age", lambda large: clock.age(large.thread.created_at)),
    ]
    screen.table(columns, largest)


def _growth(large: LargeThread) -> str:
    return "\u2013" if large.bytes_per_day is None else f"{format_size(large.bytes_per_day)}/day"


def add_rm(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``rm``."""
    add_thread(parser)
    parser.add_argument(
        "--checkpoint", metavar="ID", help="only this checkpoint, by its full id; the others can still be loaded"
    )
    parser.add_argument("--yes", action="store_true", help="delete without confirmation; required without a terminal")
    add_namespace(parser)
    add_inspection(parser)


def rm(arguments: argparse.Namespace) -> int:
    """Delete a thread or a checkpoint: 1 if it does not exist or the answer was no; 2 without a terminal."""
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> tuple[ThreadRow, CheckpointRow | None]:
        thread = await find_thread(inspector, arguments.thread, arguments.family)
        if arguments.checkpoint is None:
            return thread, None
        found = await named(inspector, thread, arguments.checkpoint, arguments.namespace)
        if found.checkpoint_id != arguments.checkpoint:
            raise NotFound(f"To delete a checkpoint, give its full id: {found.checkpoint_id}")
        return thread, found

    thread, checkpoint = look(arguments, find, shows=False)
    what = _described(thread, checkpoint, clock)
    refused = confirm(what, agreed=arguments.yes)
    if refused is not None:
        return refused

    async def remove(inspector: Inspector) -> bool:
        config = inspector.config.model_copy(update={"search": False})  # the full-text index may be missing
        family = find_family(thread.family)
        changes = changes_of(family, config)
        if checkpoint is None:
            operation = changes.delete(thread.thread_id, None, "")
        else:
            operation = changes.delete(thread.thread_id, checkpoint.checkpoint_id, checkpoint.namespace)
        return await inspector.database.asynchronous.run(operation, family.schema(config), "validate")

    removed = look(arguments, remove, shows=False)
    if arguments.json:
        write_json({"deleted": removed, "thread": thread, "checkpoint": checkpoint})
    else:
        notify(f"Deleted {what}." if removed else "It had been deleted already.")
    return OK if removed else FAILED


def _described(thread: ThreadRow, checkpoint: CheckpointRow | None, clock: Clock) -> str:
    name = f"thread {sanitize_line(thread.thread_id)} of {find_family(thread.family).title}"
    if checkpoint is not None:
        saved = clock.zoned(checkpoint.created_at)
        return f"checkpoint {sanitize_line(checkpoint.checkpoint_id)} ({saved}) of {name}"
    count = counted(thread.checkpoints, find_family(thread.family).unit)
    return f"{name} ({count}, {format_size(thread.size_bytes)}, last saved {clock.zoned(thread.updated_at)})"
