"""Which text of a state is indexed: only what its save adds, so that the index grows with the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .coding.delta import Delta

#: Ends the part of a text that the states that follow share. What comes after it goes when the checkpoint goes.
SHARED_TEXT_END = "\x1e"

#: How many characters of one message, or of another text, are searched.
CHARACTERS_PER_TEXT = 10_000

#: How many characters one save adds to the index at most.
CHARACTERS_PER_SAVE = 1_000_000


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


def snippet(text: str, query: str, radius: int = 80) -> str:
    """A part of a text around the first word of a query that it holds, at most ``2 * radius`` characters wide."""
    text = text.replace(SHARED_TEXT_END, "\n")
    folded = text.casefold()
    places = [folded.find(word) for word in query.casefold().split()]
    place = min((place for place in places if place >= 0), default=0)
    start, end = max(0, place - radius), min(len(text), place + radius)
    return ("…" if start else "") + " ".join(text[start:end].split()) + ("…" if end < len(text) else "")
