"""What all requests together may take, and of that each tenant: `Quotas`, and `Places`, which are waited for.

A tenant may take one more as long as it has less than is free (a dynamic threshold, as in the buffers of switches). One
tenant alone gets half of the whole, a second one half of the rest; so there is always something left for who has
nothing yet, however many others take as much as they can.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from .problems import try_later


class Quotas:
    """An amount that requests share.

    Args:
        whole: How much there is.
    """

    def __init__(self, whole: int) -> None:
        self.whole = whole
        self.of_one = max(1, whole // 2)
        self.taken = 0
        self.taken_by: Counter[Hashable] = Counter()

    def may_take(self, tenant: Hashable, amount: int) -> bool:
        """Whether a tenant may take so much more."""
        free = self.whole - self.taken
        mine = self.taken_by[tenant]
        return amount <= free and (mine + amount <= free - amount or not mine)

    def take(self, tenant: Hashable, amount: int) -> None:
        """Take some, which must be given back."""
        self.taken += amount
        self.taken_by[tenant] += amount

    def give_back(self, tenant: Hashable, amount: int) -> None:
        """Give some back."""
        self.taken -= amount
        self.taken_by[tenant] -= amount
        if not self.taken_by[tenant]:
            del self.taken_by[tenant]


class Quota:
    """What one request has taken of several amounts.

    Args:
        tenant: Whose request it is; None for one that needs no token.
    """

    def __init__(self, tenant: Hashable = None) -> None:
        self.tenant = tenant
        self._taken: list[tuple[Quotas, int]] = []

    def take(self, shares: Quotas, amount: int) -> None:
        """Take some.

        Raises:
            Problem: There is not that much left, for this tenant or at all.
        """
        if not shares.may_take(self.tenant, amount):
            if shares.taken + amount > shares.whole and not shares.taken_by[self.tenant]:
                raise try_later("busy", "Too many requests are under way.", seconds=1)
            raise try_later("too_many_requests", "Too many of your requests are under way.", status=429, seconds=1)
        shares.take(self.tenant, amount)
        self._taken.append((shares, amount))

    def give_back(self) -> None:
        """Give back all that was taken."""
        for shares, amount in self._taken:
            shares.give_back(self.tenant, amount)
        self._taken.clear()


class Places:
    """Places that requests wait for, such as connections to the database: each tenant's in their order.

    Of the tenants that wait, the one that has fewest is next. So a tenant's excess waits behind its own requests, and
    nobody else's.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self.shares = Quotas(count)
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def one(self, tenant: Hashable) -> AsyncIterator[None]:
        """Have a place within the block; waits for it."""
        await self.enter(tenant)
        try:
            yield
        finally:
            self.leave(tenant)

    async def enter(self, tenant: Hashable) -> None:
        """Take a place, which must be left; waits for it."""
        if tenant not in self._waiting and self.shares.may_take(tenant, 1):
            self.shares.take(tenant, 1)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.leave(tenant)  # it came together with the cancellation
            else:
                self._forget(tenant, turn)
            raise

    def leave(self, tenant: Hashable) -> None:
        """Leave a place to whose turn it is."""
        self.shares.give_back(tenant, 1)
        while (following := self._next()) is not None:
            turn = self._waiting[following][0]
            self._forget(following, turn)
            self.shares.take(following, 1)
            turn.set_result(None)

    def _next(self) -> Hashable | None:
        """Whose turn it is, if anybody's."""
        fitting = [tenant for tenant in self._waiting if self.shares.may_take(tenant, 1)]
        return min(fitting, key=self.shares.taken_by.__getitem__, default=None)

    def _forget(self, tenant: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._waiting[tenant]
        queue.remove(turn)
        if not queue:
            del self._waiting[tenant]
