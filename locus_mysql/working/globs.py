"""Globs in which only ``*`` and ``?`` have a meaning, for storages that match in Python."""

from __future__ import annotations

import re
from collections.abc import Callable

_MEANINGS = {"*": ".*", "?": "."}


def matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a text matches a glob: ``*`` stands for any text, ``?`` for one character, all else for itself."""
    parts = "".join(_MEANINGS.get(character) or re.escape(character) for character in re.sub(r"\*+", "*", pattern))
    compiled = re.compile(parts, re.DOTALL)
    return lambda text: compiled.fullmatch(text) is not None
