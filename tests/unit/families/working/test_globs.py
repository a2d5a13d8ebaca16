"""Globs match as documented, and quickly."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.runtime.matching import matcher

from ....growth import assert_linear, steps_of

DEADLINE_S = 60.0

TEXTS = st.text("aab.\\n*?\\", max_size=12)


def matches(pattern: str, text: str) -> bool:
    """Match by the definition of each wildcard."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and matches(pattern[1:], text[1:])


@given(pattern=st.text("ab*?.\\", max_size=8), text=TEXTS)
def test_a_glob_matches_as_documented(pattern: str, text: str) -> None:
    assert matcher(pattern)(text) is matches(pattern, text)


def test_every_glob_is_matched_quickly() -> None:
    """Run in a process that can be killed: with backtracking, such a pattern would take practically forever."""
    program = """
from locus_mysql.runtime.matching import matcher
for pattern in ("*a" * 100 + "*b", "*a" * 100 + "b", "*?" * 200 + "b", "*" * 500 + "b", "?*" * 256 + "*b"):
    assert not matcher(pattern)("a" * 512), pattern
    assert matcher(pattern)("a" * 512 + "b"), pattern
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=DEADLINE_S)


def test_a_pattern_longer_than_all_texts_is_not_compiled() -> None:
    assert_linear(lambda count: steps_of(lambda: matcher("a*" * count)("b" * 512)), 1_000, most=1.5)
