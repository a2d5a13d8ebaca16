"""What an export reads and an import writes: the protocols `Source` and `Target`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .database import Database


@dataclass(slots=True)
class Page:
    """Some lines of an export.

    Args:
        lines: The lines.
        last: The position of the last thing that was read; None if there was none.
        damaged: What could not be read, in words.
    """

    lines: list[bytes] = field(default_factory=list)
    last: Any = None
    damaged: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Tally:
    """What became of what was to be written as it was.

    Args:
        written: How many were not there, and are now.
        present: How many were there already, the same in all.
        differing: How many are there as something else, or could not be put in their place, and were left alone.
    """

    written: int = 0
    present: int = 0
    differing: int = 0


class Source(Protocol):
    """Reads what is to be exported, in an order of positions."""

    @property
    def constants(self) -> bool:
        """Whether NaN and the infinities, which JSON does not know, may stand in lines."""

    @property
    def head(self) -> bytes:
        """The first line."""

    def position_of(self, content: Mapping[str, Any]) -> Any:
        """The position of what a line says.

        Raises:
            InvalidInput: It cannot be read.
        """

    async def count(self, database: Database) -> int:
        """How much there is; makes or checks the tables."""

    async def page(self, database: Database, after: Any, limit: int) -> Page:
        """Some lines behind a position, or from the beginning."""


class Target(Protocol):
    """Writes what lines say."""

    @property
    def constants(self) -> bool:
        """Whether NaN and the infinities, which JSON does not know, may stand in lines."""

    def read(self, content: Mapping[str, Any]) -> Any:
        """What a line says, checked.

        Raises:
            InvalidInput: It holds what cannot be stored.
        """

    async def write(self, database: Database, contents: Sequence[Any], done: Tally) -> None:
        """Write it, and read it again to compare."""
