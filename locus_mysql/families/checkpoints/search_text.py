"""Selects the text of a state to index: only what its save adds, so that the index grows with the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ...dialect.words import excerpt
from .coding.delta import Delta
from .statements.dialect import SNIPPET_CHARACTERS

#: Separates the text that later states share from the text that only this checkpoint has, which is removed with it.
SHARED_TEXT_END = "\x1e"

#: Maximum number of indexed characters of one message or other text.
CHARACTERS_PER_TEXT = 10_000

#: Maximum number of characters that one save adds to the index.
CHARACTERS_PER_SAVE = 1_000_000

#: Maximum number of query words that a snippet is searched for.
SNIPPET_WORDS = 16


def text_of_dict(state: Mapping[str, Any], delta: Delta) -> tuple[str, bool]:
    """Return the text in a state's lists that its parent does not have, and the text of its other fields."""
    continues = not delta.discontinued and bool(delta.news)
    shared: list[str] = []
    head: list[str] = []
    for name, value in state.items():
        if isinstance(value, list):
            shared.extend(strings(value[delta.news.get(name, 0) if continues else 0 :]))
        elif isinstance(value, str | dict):
            head.extend(strings(value))
    text, head_text = joined(shared), joined(head)[:CHARACTERS_PER_TEXT] if head else ""
    return (f"{text}{SHARED_TEXT_END}{head_text}" if head_text else text), continues


def joined(texts: Iterable[str]) -> str:
    """Join texts, each truncated to its indexed length."""
    pieces: list[str] = []
    size = 0
    for text in texts:
        if size >= CHARACTERS_PER_SAVE:
            break
        pieces.append(text[:CHARACTERS_PER_TEXT])
        size += len(pieces[-1]) + 1
    whole = "\n".join(pieces)[:CHARACTERS_PER_SAVE]
    return whole.replace(SHARED_TEXT_END, " ").encode(errors="replace").decode()


def strings(value: Any) -> Iterator[str]:
    """Return every text in a JSON value, in order, without keys."""
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


def snippet(text: str, words: Sequence[re.Pattern[str]], radius: int = 80) -> str:
    """Return the part of a text around the first occurrence of some words, at most ``2 * radius`` characters wide.

    Args:
        text: The text, of which the first `SNIPPET_CHARACTERS` are searched for the words.
        words: See `snippet_words`.
        radius: Characters before and after the word's beginning.
    """
    text = text[:SNIPPET_CHARACTERS].replace(SHARED_TEXT_END, "\n")
    folded = text.casefold()
    found = [match.start() for word in words if (match := word.search(folded)) is not None]
    return excerpt(text, min(found, default=0), radius)


def snippet_words(query: str) -> list[re.Pattern[str]]:
    """The first `SNIPPET_WORDS` words of a query, as what finds them in folded text.

    A pattern without choices finds a text in linear time, whatever both are; `str.find` does not.
    """
    words = dict.fromkeys(query[:SNIPPET_CHARACTERS].casefold().split())
    return [re.compile(re.escape(word)) for word in islice(words, SNIPPET_WORDS)]
