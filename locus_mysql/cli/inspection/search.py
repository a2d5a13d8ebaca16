"""``search``: where words were said."""

from __future__ import annotations

import argparse
import re

from ...errors import LocusMySQLError
from ...inspection.inspector import Inspector
from ...inspection.records import Hit
from ..arguments import FAILED, OK, add_limit, tell
from .command import Clock, add_looking, families_of, look
from .screen import Said, Screen, write_json


def add_search(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``search``."""
    parser.add_argument("words", nargs="+", metavar="WORD", help="what is looked for; a phrase in double quotes")
    add_limit(parser, 20, " hits")
    add_looking(parser)


def search(arguments: argparse.Namespace) -> int:
    """Show where words were said, best first; 1 if nowhere."""
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
                if len(families) == 1:
                    raise
                refused.append(f"{family}: {error}")
        for one in refused:
            tell(one)
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
        tell("Nobody said that.")
    return OK if hits else FAILED


def _words(query: str) -> re.Pattern[str]:
    """Finds the words of a query in a text."""
    words = [re.escape(word) for word in query.replace('"', " ").split()]
    return re.compile("|".join(sorted(words, key=len, reverse=True)) or r"(?!)", re.IGNORECASE)


def _show(screen: Screen, hit: Hit, words: re.Pattern[str], clock: Clock) -> None:
    screen.line(Said(hit.thread_id, "bold"), Said(f"  {hit.family}  {clock.zoned(hit.created_at)}", "dim"))
    screen.line("  ", Said(hit.checkpoint_id, "yellow"))
    pieces: list[Said | str] = ["  "]
    place = 0
    for found in words.finditer(hit.snippet):
        pieces += [Said(hit.snippet[place : found.start()]), Said(found.group(), "bold reverse")]
        place = found.end()
    screen.line(*pieces, Said(hit.snippet[place:]))
    screen.line("")
