"""Globs in which only ``*`` and ``?`` have a meaning, for storages that match in Python."""

from __future__ import annotations

import re
from collections.abc import Callable


def matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a text matches a glob: ``*`` stands for any text, ``?`` for one character, all else for itself.

    What stands between two stars is taken where it comes first, once for all (an atomic group): no later place can
    match more. Were others tried too, ten stars would take hours on a text of 500 characters.
    """
    first, *others = (_literal(part) for part in re.sub(r"\*+", "*", pattern).split("*"))
    *between, last = others or [""]
    whole = first + "".join(f"(?>.*?{part})" for part in between) + (f".*{last}" if others else "")
    compiled = re.compile(whole, re.DOTALL)
    return lambda text: compiled.fullmatch(text) is not None


def _literal(part: str) -> str:
    return "".join("." if character == "?" else re.escape(character) for character in part)
