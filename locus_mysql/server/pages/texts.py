"""Formatting values for pages: stored texts with hidden characters made visible, sizes, times, JSON, and its `tree`."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Literal, TypeAlias

from markupsafe import Markup, escape

#: Invisible characters that change how the following text reads, or hide a text within a text: controls except tab and
#: line ends, directional marks, fillers, invisible operators, tags, lone surrogates. Joiners, which scripts and emoji
#: need, are not among them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)

#: Maximum number of hidden characters in a text that are shown by name, and of query words that are marked.
MOST_MARKS = 200

#: Maximum number of query words that are searched for in a text, to limit the time.
MOST_WORDS = 32

#: Number of characters of an indented JSON value.
MOST_PRETTY = 200_000

#: The time zone of the user whose page is made.
ZONE: ContextVar[tzinfo] = ContextVar("zone", default=UTC)

_UNITS = ("KB", "MB", "GB", "TB")

_AGES = ((60, "s"), (60, "min"), (24, "h"), (365, "d"))


def shown(value: object) -> Markup:
    """Return a stored text with a mark for each hidden character; with a shorter mark if there are very many."""
    text, count = _HIDDEN.subn(_mark, str(escape(str(value))), MOST_MARKS)
    if count == MOST_MARKS:  # a mark takes a hundred times the space of its text
        text = _HIDDEN.sub("\ufffd", text)
    return Markup(text)  # noqa: S704 - what was escaped, and our own marks


def has_many_marks(text: str) -> bool:
    """Return whether a text has too many hidden characters to show each of them by name."""
    return len(_HIDDEN.findall(text)) >= MOST_MARKS


def _mark(found: re.Match[str]) -> str:
    code = f"U+{ord(found[0]):04X}"
    name = unicodedata.name(found[0], code)
    return f'<span class="hidden-character" title="{name}">{code}</span>'


def words_in(query: str) -> re.Pattern[str] | None:
    """Return a pattern that finds the words of a query, limited in number, as whole words; None without words."""
    wanted = re.findall(r"\w+", query)[:MOST_WORDS]
    return re.compile(rf"(?<!\w)({'|'.join(wanted)})(?!\w)", re.IGNORECASE) if wanted else None


def marked(text: str, words: str) -> Markup:
    """Return a stored text in which the words of a query are marked, at a limited number of places."""
    wanted = words_in(words)
    if wanted is None:
        return shown(text)
    pieces = wanted.split(text, maxsplit=MOST_MARKS)
    made = [
        Markup("<mark>{}</mark>").format(shown(piece)) if at % 2 else shown(piece) for at, piece in enumerate(pieces)
    ]
    return Markup("").join(made)


def size(count: float) -> str:
    """Format a number of bytes with three digits."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in _UNITS:
        count /= 1000
        if count < 999.5 or unit == _UNITS[-1]:
            break
    return f"{count:.{2 if count < 9.995 else 1 if count < 99.95 else 0}f} {unit}"


def number(value: float) -> str:
    """Format a number with separated thousands."""
    return f"{value:,}".replace(",", "\u202f")


def time(value: datetime) -> str:
    """Format a time in the user's time zone, to the second."""
    return in_zone(value).strftime("%Y-%m-%d %H:%M:%S")


def clock(value: datetime) -> str:
    """Format the time of day in the user's time zone, to the millisecond."""
    return in_zone(value).strftime("%H:%M:%S.%f")[:-3]


def day(value: datetime) -> str:
    """Format the day in the user's time zone."""
    return in_zone(value).strftime("%Y-%m-%d")


def in_zone(value: datetime) -> datetime:
    """Return a time in the user's time zone; in UTC at the ends of the calendar, which have no time in some zones."""
    try:
        return value.astimezone(ZONE.get())
    except OverflowError:
        return value.astimezone(UTC)


def moment(value: datetime | None, *, relative: bool = False, only_clock: bool = False) -> Markup:
    """Return an HTML element with a time, its age or its time of day, and the full time as its title."""
    if value is None:
        return Markup("\u2013")
    exact = value.astimezone(UTC)
    text = age(exact) if relative else clock(exact) if only_clock else time(exact)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        exact.isoformat().replace("+00:00", "Z"), exact.strftime("%Y-%m-%d %H:%M:%S.%f"), text
    )


def age(value: datetime, now: datetime | None = None) -> str:
    """Format how long ago a time was, or how soon it will be."""
    passed = (now or datetime.now(UTC)) - value
    length = abs(passed)
    if length < timedelta(seconds=5):
        return "now"
    amount = length.total_seconds()
    unit = "s"
    for step, unit in _AGES:  # noqa: B007 - the last one stays
        if amount < step:
            break
        amount /= step
    else:
        unit = "y"
    text = f"{amount:.0f}\u202f{unit}"
    return f"{text} ago" if passed > timedelta() else f"in {text}"


def pretty(value: Any, most: int = MOST_PRETTY) -> str:
    """Format a JSON value with indentation; of a large value, the beginning.

    The lines of a deep value are mostly blanks, and could take two hundred times the size of the value.
    """
    pieces, size = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2, default=str).iterencode(value):
        pieces.append(piece)
        size += len(piece)
        if size >= most:
            break
    return "".join(pieces)[:most]


def short(value: Any, most: int = 80) -> str:
    """Format a value on one line, shortened if it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def cut(text: str, most: int) -> tuple[str, str]:
    """Split a text into its beginning and the rest."""
    if len(text) <= most:
        return text, ""
    end = max(text.rfind("\n", 0, most), text.rfind(" ", 0, most))
    end = end if end > most // 2 else most
    return text[:end], text[end:]


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


FILTERS: Mapping[str, Callable[..., object]] = {
    "shown": shown,
    "marked": marked,
    "size": size,
    "number": number,
    "moment": moment,
    "day": day,
    "clock": clock,
    "pretty": pretty,
    "short": short,
    "cut": cut,
    "plural": plural,
}


#: Limits of the tree: number of nodes, depth, characters of each text. The JSON file has the rest.
MOST_NODES, MOST_LEVELS, MOST_CHARACTERS = 2_000, 24, 1_000

#: Number of levels unfolded at first.
OPEN_LEVELS = 1

Kind: TypeAlias = Literal["object", "array", "text", "number", "boolean", "null", "more"]


@dataclass(slots=True)
class Branch:
    """A node of the tree.

    Attributes:
        name: The key or index; empty for the root.
        kind: The type of its value; ``more`` stands for omitted nodes.
        text: The value, if it is a scalar.
        count: Its number of child values.
        below: The children in the tree.
        open: Whether it is unfolded.
        hit: Whether the node itself contains the searched text.
    """

    name: str
    kind: Kind
    text: str = ""
    count: int = 0
    below: list[Branch] = field(default_factory=list)
    open: bool = False
    hit: bool = False


@dataclass(slots=True)
class _Budget:
    nodes: int = MOST_NODES


def tree(value: Any, find: str = "") -> Branch:
    """Return the tree of a value.

    Args:
        value: A JSON value.
        find: A text to search for in keys and texts, ignoring case. The path to each hit is unfolded.
    """
    return _branch("", value, find.casefold(), 0, _Budget())


def hits(branch: Branch) -> int:
    """Return the number of nodes that contain the searched text."""
    return branch.hit + sum(map(hits, branch.below))


def _branch(name: str, value: Any, find: str, level: int, budget: _Budget) -> Branch:
    budget.nodes -= 1
    if isinstance(value, str) or not isinstance(value, Mapping | Sequence):
        kind, text = _leaf(value)
        branch = Branch(name, kind, text if len(text) <= MOST_CHARACTERS else _cut(text))
        branch.hit = bool(find) and (find in name.casefold() or find in text.casefold())
        return branch
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    branch = Branch(name, "object" if isinstance(value, Mapping) else "array", count=len(value))
    branch.hit = bool(find) and isinstance(value, Mapping) and find in name.casefold()
    branch.below = list(_below(pairs, len(value), find, level, budget))
    branch.open = level < OPEN_LEVELS or any(one.open or one.hit for one in branch.below if find)
    return branch


def _below(pairs: Iterable[tuple[Any, Any]], count: int, find: str, level: int, budget: _Budget) -> Iterator[Branch]:
    if level >= MOST_LEVELS:
        if count:
            yield Branch("", "more", "deeper than is shown here")
        return
    for at, (key, one) in enumerate(pairs):
        if budget.nodes <= 0:
            yield Branch("", "more", f"{count - at} more")
            return
        yield _branch(str(key), one, find, level + 1, budget)


def _leaf(value: Any) -> tuple[Kind, str]:
    if value is None:
        return "null", "null"
    if isinstance(value, bool):
        return "boolean", "true" if value else "false"
    if isinstance(value, int | float):
        return "number", json.dumps(value)
    return "text", str(value)


def _cut(text: str) -> str:
    return f"{text[:MOST_CHARACTERS]}\u2026 ({len(text):,} characters; the JSON has them all)"
