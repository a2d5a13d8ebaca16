"""Comments of tables: the family, the number of the layout, and which older programs can still use the table."""

from __future__ import annotations

import re
from typing import NamedTuple

#: The beginning of the comment of each table of a released version.
COMMENT = "locus-mysql: "

_COMMENT = re.compile(r"locus-mysql: ([\w-]+) layout (\d+)(?:, usable from (\d+))?")


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


def read_comment(comment: str) -> Layout | None:
    """Return what the comment of a table says; None if this package did not write it."""
    found = _COMMENT.fullmatch(comment)
    if found is None:
        return None
    number = int(found[2])
    return Layout(found[1], number, int(found[3] or number))
