"""Globs in which only ``*`` and ``?`` are special, for storages that match in Python."""

from __future__ import annotations

import re
from collections.abc import Callable


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that checks whether a text matches a glob. ``*`` matches any text, ``?`` one character.

    The text between two stars is matched at its first position only (an atomic group), as no later one can match more.
    With backtracking, ten stars would take hours on a text of 500 characters. A pattern that is longer than the text
    is never compiled.
    """
    least = len(pattern) - pattern.count("*")
    compiled: list[re.Pattern[str]] = []

    def matches(text: str) -> bool:
        if len(text) < least:
            return False
        if not compiled:
            compiled.append(_compile(pattern))
        return compiled[0].fullmatch(text) is not None

    return matches


def _compile(pattern: str) -> re.Pattern[str]:
    first, *others = (_literal(part) for part in re.sub(r"\*+", "*", pattern).split("*"))
    *between, last = others or [""]
    whole = first + "".join(f"(?>.*?{part})" for part in between) + (f".*{last}" if others else "")
    return re.compile(whole, re.DOTALL)


def _literal(part: str) -> str:
    return "".join("." if character == "?" else re.escape(character) for character in part)
