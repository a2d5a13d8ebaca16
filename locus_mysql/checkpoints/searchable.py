"""Which text of a state is indexed: only what its save adds, so that the index grows with the conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from .coding.delta import Delta

#: Ends the part of a text that the states that follow share. What comes after it goes when the checkpoint goes.
SHARED_TEXT_END = "\x1e"

#: How many characters of one message, or of another text, are searched.
CHARACTERS_PER_TEXT = 10_000

#: How many characters one save adds to the index at most.
CHARACTERS_PER_SAVE = 1_000_000

#: How many words and phrases of a query count for the score of a hit.
PARTS_SCORED = 16

#: A phrase, or what stands between blanks and ASCII punctuation. A part need not be what MySQL takes for one word.
_PART = re.compile(r'"([^"]*)"|([^\s!-/:-@\[-^`{-~]+)')

#: From a state and its delta: the text to index, and whether it only adds to the parent's text.
TextOf: TypeAlias = Callable[[Mapping[str, Any], Delta], tuple[str, bool]]


def text_of_plain(state: Mapping[str, Any], delta: Delta) -> tuple[str, bool]:
    """The text in a state's lists that its parent does not have, and the text of its other fields."""
    continues = not delta.discontinued and bool(delta.news)
    shared: list[str] = []
    head: list[str] = []
    for name, value in state.items():
        if isinstance(value, list):
            shared.extend(strings(value[delta.news.get(name, 0) if continues else 0 :]))
        else:
            head.extend(strings(value))
    text, head_text = joined(shared), joined(head)[:CHARACTERS_PER_TEXT]
    return (f"{text}{SHARED_TEXT_END}{head_text}" if head_text else text), continues


def joined(texts: Iterable[str]) -> str:
    """Texts joined to one, each cut to the length that is searched."""
    whole = "\n".join(text[:CHARACTERS_PER_TEXT] for text in texts)[:CHARACTERS_PER_SAVE]
    return whole.replace(SHARED_TEXT_END, " ").encode(errors="replace").decode()


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, in order, keys left out."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if item:
                yield item
        elif isinstance(item, dict):
            pending.extend(reversed(item.values()))
        elif isinstance(item, list):
            pending.extend(reversed(item))


def parts_of(query: str) -> list[str]:
    """The parts of a query that count for the score of a hit, each once: phrases in quotes, and words."""
    parts = [f'"{phrase}"' if phrase else word for phrase, word in _PART.findall(query)]
    return list({part.casefold(): part for part in parts}.values())[:PARTS_SCORED]


def snippet(text: str, query: str, radius: int = 80) -> str:
    """A part of a text around the first word of a query that it holds, at most ``2 * radius`` characters wide."""
    text = text.replace(SHARED_TEXT_END, "\n")
    folded = text.casefold()
    places = [folded.find(word) for word in query.casefold().split()]
    place = min((place for place in places if place >= 0), default=0)
    start, end = max(0, place - radius), min(len(text), place + radius)
    return ("…" if start else "") + " ".join(text[start:end].split()) + ("…" if end < len(text) else "")
