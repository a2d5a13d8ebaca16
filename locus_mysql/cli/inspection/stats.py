"""``stats``: how much is kept, how much was added by day, and the largest threads with how fast they grow."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...inspection.inspector import Inspector
from ...inspection.records import Day, LargeThread, Statistics
from ...integrations.counting import counted
from ..arguments import OK, add_limit
from .command import Clock, add_looking, families_of, look
from .measures import told_size
from .screen import Column, Said, Screen, write_json

#: The longest bar, in characters, and what a narrow terminal has besides.
_BAR, _BESIDE = 30, 50


def add_stats(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``stats``."""
    add_limit(parser, 10, " large threads")
    add_looking(parser)


def stats(arguments: argparse.Namespace) -> int:
    """Show how much is kept of each family."""
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> list[Statistics]:
        return [await inspector.statistics(family) for family in await families_of(inspector, arguments.family)]

    found = look(arguments, find)
    if arguments.json:
        write_json({"families": found})
        return OK
    screen = Screen()
    for place, one in enumerate(found):
        if place:
            screen.line("")
        _show(screen, one, arguments.limit, clock)
    return OK


def _show(screen: Screen, found: Statistics, limit: int, clock: Clock) -> None:
    screen.line(Said(found.family, "bold"))
    screen.line(
        f"  {counted(found.threads, 'thread')}, {counted(found.checkpoints, 'checkpoint')}, ",
        told_size(found.size_bytes),
    )
    if found.sampled is not None:
        screen.line(Said(f"  (estimated from {counted(found.sampled, 'thread')})", "dim"))
    if found.whole_bytes is not None and found.whole_bytes > found.size_bytes:
        times = found.whole_bytes / max(found.size_bytes, 1)
        screen.line(
            Said(f"  whole states would have taken {told_size(found.whole_bytes)}, {times:.1f} times as much", "dim")
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
            told_size(day.size_bytes),
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
            told_size(large.thread.size_bytes),
            f"{told_size(large.bytes_per_day)}/day",
            f"{large.thread.checkpoints:,}",
            clock.age(large.thread.created_at),
        ]
        for large in largest
    ]
    screen.table(columns, rows)
