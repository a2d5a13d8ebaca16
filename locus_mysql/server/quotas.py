"""`Quotas` and `FairSemaphore`: resources that tenants share; requests beyond a quota are refused, or wait.

A tenant may take more as long as it has less than is free (a dynamic threshold, as in the buffers of network switches).
A single tenant gets half of the total, a second one half of the rest. So some of the resource is always left for a
tenant that has taken nothing yet.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from .problems import try_later


class Quotas:
    """A resource that requests share.

    Args:
        whole: The total amount.
    """

    def __init__(self, whole: int) -> None:
        self.whole = whole
        self.of_one = max(1, whole // 2)
        self.taken = 0
        self.taken_by: Counter[Hashable] = Counter()

    def may_take(self, tenant: Hashable, amount: int) -> bool:
        """Return whether a tenant may take this amount in addition."""
        free = self.whole - self.taken
        mine = self.taken_by[tenant]
        return amount <= free and (mine + amount <= free - amount or not mine)

    def take(self, tenant: Hashable, amount: int) -> None:
        """Take an amount, which must be returned by `give_back`."""
        self.taken += amount
        self.taken_by[tenant] += amount

    def give_back(self, tenant: Hashable, amount: int) -> None:
        """Return an amount."""
        self.taken -= amount
        self.taken_by[tenant] -= amount
        if not self.taken_by[tenant]:
            del self.taken_by[tenant]


class Quota:
    """The amounts that one request has taken.

    Args:
        tenant: The tenant of the caller; None for a request without a token.
    """

    def __init__(self, tenant: Hashable = None) -> None:
        self.tenant = tenant
        self._taken: list[tuple[Quotas, int]] = []

    def take(self, quotas: Quotas, amount: int) -> None:
        """Take an amount.

        Raises:
            Problem: Too little is left, for this tenant or in total.
        """
        if not quotas.may_take(self.tenant, amount):
            if quotas.taken + amount > quotas.whole and not quotas.taken_by[self.tenant]:
                raise try_later("busy", "Too many requests are in progress.", seconds=1)
            raise try_later("too_many_requests", "Too many of your requests are in progress.", status=429, seconds=1)
        quotas.take(self.tenant, amount)
        self._taken.append((quotas, amount))

    def give_back(self) -> None:
        """Return all amounts."""
        for quotas, amount in self._taken:
            quotas.give_back(self.tenant, amount)
        self._taken.clear()


class FairSemaphore:
    """A semaphore for a resource that tenants share fairly, such as database connections.

    Each tenant's requests keep their order. The next free unit goes to the waiting tenant with the fewest units. So a
    tenant's requests wait only for its own.

    Args:
        count: The number of units.
    """

    def __init__(self, count: int) -> None:
        self.quotas = Quotas(count)
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def one(self, tenant: Hashable) -> AsyncIterator[None]:
        """Wait for a unit, and hold it within the block."""
        await self.enter(tenant)
        try:
            yield
        finally:
            self.leave(tenant)

    async def enter(self, tenant: Hashable) -> None:
        """Wait for a unit and take it; `leave` returns it."""
        if tenant not in self._waiting and self.quotas.may_take(tenant, 1):
            self.quotas.take(tenant, 1)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.leave(tenant)  # the unit was granted together with the cancellation
            else:
                self._forget(tenant, turn)
            raise

    def leave(self, tenant: Hashable) -> None:
        """Return a unit, and pass it on to the next tenant."""
        self.quotas.give_back(tenant, 1)
        while (following := self._next()) is not None:
            turn = self._waiting[following][0]
            self._forget(following, turn)
            self.quotas.take(following, 1)
            turn.set_result(None)

    def _next(self) -> Hashable | None:
        """Return the next waiting tenant, if any."""
        fitting = [tenant for tenant in self._waiting if self.quotas.may_take(tenant, 1)]
        return min(fitting, key=self.quotas.taken_by.__getitem__, default=None)

    def _forget(self, tenant: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._waiting[tenant]
        queue.remove(turn)
        if not queue:
            del self._waiting[tenant]
