"""Threads and tasks wait for a slot in a full pool."""

from __future__ import annotations

import asyncio
from weakref import ref

from locus_mysql.config import MySQLConfig
from locus_mysql.engine.connection_slots import AwaitedSlots, Slot, pool_timeout

from ...growth import assert_linear


def test_the_error_of_a_full_pool_names_the_options_to_raise() -> None:
    error = pool_timeout(MySQLConfig(pool_size=3, pool_timeout_s=0.5))
    assert isinstance(error, TimeoutError)
    for words in ("All 3 connections", "0.5 s", "pool_size", "pool_timeout_s", "max_connections"):
        assert words in str(error)


def test_the_work_of_a_waiting_task_does_not_grow_with_the_number_of_those_that_wait() -> None:
    compared = 0

    class Counted(Slot):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

        __hash__ = Slot.__hash__

    async def use(slots: AwaitedSlots) -> None:
        slot = Counted()
        if not slots.take(slot):
            await slots.wait(slot)
        await asyncio.sleep(0)
        slots.taken.discard(ref(slot))
        slots.wake()

    async def all_at_once(count: int) -> None:
        slots = AwaitedSlots(MySQLConfig(pool_size=2, pool_timeout_s=600), [])
        await asyncio.gather(*(use(slots) for _ in range(count)))

    def comparisons(count: int) -> int:
        nonlocal compared
        compared = 0
        asyncio.run(all_at_once(count))
        return compared

    assert_linear(comparisons, 50)


def test_a_slot_that_is_freed_is_not_offered_to_tasks_of_a_closed_event_loop() -> None:
    slots = AwaitedSlots(MySQLConfig(pool_size=1, pool_timeout_s=600), [])
    holding, waiting = Slot(), Slot()
    assert slots.take(holding)
    loop = asyncio.new_event_loop()
    task = loop.create_task(slots.wait(waiting))
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert len(slots.waiters) == 1
    loop.close()
    slots.taken.discard(ref(holding))
    slots.wake()
    assert not slots.taken
    assert not slots.waiters
    task._log_destroy_pending = False  # type: ignore[attr-defined]
