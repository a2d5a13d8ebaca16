"""Noticing a source whose pages never end: `PageProgress`. No I/O."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ....errors import CorruptCheckpoint

#: Pages in a row that may hold nothing new: where much was deleted, some are empty.
MAX_PAGES_WITHOUT_NEW = 100


class PageProgress:
    """What was seen of a list that comes in pages.

    Args:
        source: What lists it, for the error.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._cursors: set[str] = set()
        self._seen: set[Hashable] = set()
        self._without_new = 0

    def new_of(self, items: Iterable[Hashable]) -> list[bool]:
        """For each item of a page, whether no page before had it."""
        new = []
        for item in items:
            new.append(item not in self._seen)
            self._seen.add(item)
        self._without_new = 0 if any(new) else self._without_new + 1
        return new

    def check(self, cursor: str) -> None:
        """Refuse to ask for the next page if that would go on for ever.

        Raises:
            CorruptCheckpoint: The cursor was given before, or many pages held nothing new.
        """
        if cursor in self._cursors:
            raise CorruptCheckpoint(
                f"{self._source} gives the cursor of an earlier page again, so its list never ends. What it had listed "
                "until then was taken; look at the service that is copied from."
            )
        if self._without_new >= MAX_PAGES_WITHOUT_NEW:
            raise CorruptCheckpoint(
                f"{self._source} gave {self._without_new} pages in a row with nothing new, and says that there are "
                "more. Look at the service that is copied from."
            )
        self._cursors.add(cursor)
