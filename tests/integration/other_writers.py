"""`Others`: what other processes write while a test reads a list page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class Others:
    """Other processes. In each of their turns they delete some owners, write to some, and create some.

    Args:
        owners: The number of owners at first.
        at_once: The number of owners deleted in each turn. Half as many are written to, and half as many are created.
    """

    def __init__(self, owners: int, at_once: int = 6) -> None:
        self.names = [f"thread {number:03}" for number in range(owners)]
        self._at_once = at_once
        # They include owners that a list has already passed and owners that it has not reached yet.
        self._doomed = self.names[3::5] + self.names[3::5][::-1]
        self._busy = self.names[4::5]
        self.untouched = [name for name in self.names if name not in {*self.names[3::5], *self._busy}]
        self._new = self.turns = 0

    def delete(self) -> list[str]:
        """Begin a turn, and return the owners to delete in it, some of which are deleted already."""
        self.turns += 1
        return [self._doomed.pop(0 if self.turns % 2 else -1) for _ in range(min(self._at_once, len(self._doomed)))]

    def save(self) -> list[str]:
        """Return the owners to write to, some of which do not exist yet."""
        half = self._at_once // 2
        self._busy = self._busy[half:] + self._busy[:half]
        self._new += half
        return [*self._busy[-half:], *(f"new {self._new - number}" for number in range(half))]

    def assert_each_once(self, listed: Iterable[str], turns: int = 2) -> None:
        """Check that every owner that nobody touches was listed exactly once."""
        assert self.turns >= turns, "it took one page"
        counts = Counter(listed)
        assert {name: counts[name] for name in self.untouched} == dict.fromkeys(self.untouched, 1)
