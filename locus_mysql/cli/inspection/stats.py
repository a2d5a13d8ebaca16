"""``stats``: the numbers and sizes of stored data, their growth by day, and the largest threads."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...families.family import Counts, in_words
from ...families.inspection.records import Day, LargeThread, Statistics
from ...families.registry import find_family
from ...inspection.inspector import Inspector
from ...runtime.counting import counted
from ..arguments import OK, add_limit
from .command import Clock, add_inspection, families_of, look
from .measures import format_size
from .screen import Column, Screen, Segment, write_json

#: Characters of the longest bar, and of the text beside it on a narrow terminal.
_BAR, _BESIDE = 30, 50


def add_stats(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``stats``."""
    add_limit(parser, 10, " number of large threads to list")
    add_inspection(parser, all_families=True)


def stats(arguments: argparse.Namespace) -> int:
    """Show the statistics of each family."""
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
        _show(screen, one, arguments.limit, clock)
    for name, counts in others.items():
        if found or name != next(iter(others)):
            screen.line("")
        screen.line(Segment(find_family(name).title, "bold"))
        screen.line(f"  {in_words(counts)}")
    return OK


def _show(screen: Screen, found: Statistics, limit: int, clock: Clock) -> None:
    screen.line(Segment(find_family(found.family).title, "bold"))
    screen.line(
        f"  {counted(found.threads, 'thread')}, {counted(found.checkpoints, 'checkpoint')}, ",
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
        Column("day (UTC)", whole=True),
        Column("threads", right=True, whole=True),
        Column("saves", right=True, whole=True),
        Column("added", right=True, whole=True),
        Column("", "cyan", whole=True),
    ]
    rows = [
        [
            day.day,
            f"{day.threads:,}",
            f"{day.checkpoints:,}",
            format_size(day.size_bytes),
            bar * -(-day.checkpoints * room // most),
        ]
        for day in days
    ]
    screen.table(columns, rows)


def _show_largest(screen: Screen, largest: Sequence[LargeThread], clock: Clock) -> None:
    columns = [
        Column("largest threads", "bold"),
        Column("size", right=True, whole=True),
        Column("grows by", right=True, whole=True),
        Column("saves", right=True, whole=True),
        Column("age", right=True, whole=True),
    ]
    rows = [
        [
            large.thread.thread_id,
            format_size(large.thread.size_bytes),
            "\u2013" if large.bytes_per_day is None else f"{format_size(large.bytes_per_day)}/day",
            f"{large.thread.checkpoints:,}",
            clock.age(large.thread.created_at),
        ]
        for large in largest
    ]
    screen.table(columns, rows)
