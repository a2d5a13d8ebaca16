"""What all requests together may take, and of that each caller: `Shares`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from .problems import try_later


class Shares:
    """An amount that requests share. One caller may have half of it, so that none can lock the others out.

    Args:
        whole: How much there is.
    """

    def __init__(self, whole: int) -> None:
        self.whole = whole
        self.of_one = max(1, whole // 2)
        self.taken = 0
        self.taken_by: Counter[Hashable] = Counter()


class Share:
    """What one request has taken of several amounts.

    Args:
        caller: Whose request it is; None for one that needs no token.
    """

    def __init__(self, caller: Hashable = None) -> None:
        self.caller = caller
        self._taken: list[tuple[Shares, int]] = []

    def take(self, shares: Shares, amount: int) -> None:
        """Take some.

        Raises:
            Problem: There is not that much left, for this caller or at all.
        """
        if shares.taken_by[self.caller] + amount > shares.of_one:
            raise try_later("too_many_requests", "Too many of your requests are under way.", status=429, seconds=1)
        if shares.taken + amount > shares.whole:
            raise try_later("busy", "Too many requests are under way.", seconds=1)
        shares.taken += amount
        shares.taken_by[self.caller] += amount
        self._taken.append((shares, amount))

    def give_back(self) -> None:
        """Give back all that was taken."""
        for shares, amount in self._taken:
            shares.taken -= amount
            shares.taken_by[self.caller] -= amount
            if not shares.taken_by[self.caller]:
                del shares.taken_by[self.caller]
        self._taken.clear()
