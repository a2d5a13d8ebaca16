"""Comments of tables: the family, the number of the layout, and which older programs can still use the table."""

from __future__ import annotations

import re
from typing import NamedTuple

#: The beginning of the comment of each table of a released version.
COMMENT = "locus-mysql: "

#: The beginning of the comments that development versions before release 0.1.0 wrote.
UNRELEASED_COMMENT = "locus-mysql layout "

_COMMENT = re.compile(r"locus-mysql: ([\w-]+) layout (\d+)(?:, usable from (\d+))?")
_UNRELEASED = re.compile(r"locus-mysql layout (\d+)(?:, ([\w-]+))?")


class Layout(NamedTuple):
    """What the comment of a table says.

    Args:
        family: The family of the table.
        number: The number of the layout.
        usable_from: The oldest layout whose programs can use the table.
    """

    family: str
    number: int
    usable_from: int

    @property
    def comment(self) -> str:
        """The comment with this content."""
        older = "" if self.usable_from == self.number else f", usable from {self.usable_from}"
        return f"{COMMENT}{self.family} layout {self.number}{older}"


class Unreleased(NamedTuple):
    """What the comment of a table of a development version says: its family, empty in the oldest comments."""

    family: str


def read_comment(comment: str) -> Layout | Unreleased | None:
    """Return what the comment of a table says; None if this package did not write it."""
    if found := _COMMENT.fullmatch(comment):
        number = int(found[2])
        return Layout(found[1], number, int(found[3] or number))
    if found := _UNRELEASED.fullmatch(comment):
        return Unreleased(found[2] or "")
    return None
