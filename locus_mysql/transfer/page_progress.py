"""Detects a source whose pages never end: `PageProgress`. No I/O."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ..errors import CorruptCheckpoint

#: Maximum number of consecutive pages without a new entry: some pages are empty where entries were deleted.
MAX_PAGES_WITHOUT_NEW = 100


class PageProgress:
    """Remembers the entries and cursors of a paged list.

    Args:
        source: The name of the source, for errors.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._cursors: set[str] = set()
        self._seen: set[Hashable] = set()
        self._without_new = 0

    def new_of(self, items: Iterable[Hashable]) -> list[bool]:
        """Return, for each item of a page, whether it is new."""
        new = []
        for item in items:
            new.append(item not in self._seen)
            self._seen.add(item)
        self._without_new = 0 if any(new) else self._without_new + 1
        return new

    def check(self, cursor: str) -> None:
        """Raise an error instead of reading the next page if the list never ends.

        Raises:
            CorruptCheckpoint: The cursor was returned before, or many pages had no new entry.
        """
        if cursor in self._cursors:
            raise CorruptCheckpoint(
                f"{self._source} gives the cursor of an earlier page again, so its list never ends. What it had listed "
                "until then was taken; check the service that is copied from."
            )
        if self._without_new >= MAX_PAGES_WITHOUT_NEW:
            raise CorruptCheckpoint(
                f"{self._source} gave {self._without_new} pages in a row with nothing new, and says that there are "
                "more. Check the service that is copied from."
            )
        self._cursors.add(cursor)
