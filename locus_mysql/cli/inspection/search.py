"""``search``: finds messages by their words."""

from __future__ import annotations

import argparse
import re

from ...errors import LocusMySQLError
from ...families.inspection.records import Hit
from ...families.registry import find_family
from ...inspection.inspector import Inspector
from ..arguments import FAILED, OK, add_limit, notify
from .command import Clock, add_inspection, families_of, look
from .screen import Screen, Segment, write_json


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
            _show(screen, hit, words, clock)
    else:
        notify("No message contains these words.")
    return OK if hits else FAILED


def _words(query: str) -> re.Pattern[str]:
    """Return a pattern that matches the words of a query."""
    words = [re.escape(word) for word in query.replace('"', " ").split()]
    return re.compile("|".join(sorted(words, key=len, reverse=True)) or r"(?!)", re.IGNORECASE)


def _show(screen: Screen, hit: Hit, words: re.Pattern[str], clock: Clock) -> None:
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
