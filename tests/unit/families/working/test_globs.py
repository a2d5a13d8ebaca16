"""What a glob matches, and that no glob takes long to say so."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.families.working.globs import matcher

DEADLINE_S = 60.0

TEXTS = st.text("aab.\\n*?\\", max_size=12)


def matches(pattern: str, text: str) -> bool:
    """The same, by what each meaning says."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and matches(pattern[1:], text[1:])


@given(pattern=st.text("ab*?.\\", max_size=8), text=TEXTS)
def test_a_glob_matches_what_its_meanings_say(pattern: str, text: str) -> None:
    assert matcher(pattern)(text) is matches(pattern, text)


def test_no_glob_takes_long() -> None:
    """In a process that can be ended: a pattern that is matched in all ways takes longer than this machine exists."""
    program = """
from locus_mysql.families.working.globs import matcher
for pattern in ("*a" * 100 + "*b", "*a" * 100 + "b", "*?" * 200 + "b", "*" * 500 + "b", "?*" * 256 + "*b"):
    assert not matcher(pattern)("a" * 512), pattern
    assert matcher(pattern)("a" * 512 + "b"), pattern
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=DEADLINE_S)
