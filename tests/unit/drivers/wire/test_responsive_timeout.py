"""A timeout that counts only time in which the event loop is responsive."""

from __future__ import annotations

import asyncio
import time

import pytest

from locus_mysql.drivers.wire.sockets import ResponsiveTimeout

LIMIT_S = 0.2


async def test_an_idle_loop_ends_a_wait_after_the_limit() -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        async with ResponsiveTimeout(LIMIT_S) as limit:
            await asyncio.get_running_loop().create_future()
    assert limit.expired()
    assert time.monotonic() - start >= LIMIT_S


async def test_the_time_in_which_the_loop_is_blocked_does_not_count() -> None:
    async with ResponsiveTimeout(LIMIT_S) as limit:
        for _ in range(5):
            time.sleep(LIMIT_S)  # noqa: ASYNC251 - blocks the loop
            await asyncio.sleep(0)
        assert limit.was_blocked()
        assert not limit.was_blocked()
    assert not limit.expired()


async def test_a_loop_that_is_blocked_again_and_again_ends_a_wait_in_the_end() -> None:
    async def block() -> None:
        while True:
            time.sleep(LIMIT_S / 20)  # noqa: ASYNC251 - blocks the loop
            await asyncio.sleep(0)

    blocking = asyncio.ensure_future(block())
    try:
        with pytest.raises(TimeoutError):
            async with ResponsiveTimeout(LIMIT_S):
                await asyncio.get_running_loop().create_future()
    finally:
        blocking.cancel()


async def test_a_cancellation_from_outside_is_none_of_its_own() -> None:
    async def wait() -> None:
        async with ResponsiveTimeout(LIMIT_S):
            await asyncio.get_running_loop().create_future()

    waiting = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_error_within_is_passed_on_and_leaves_no_timer() -> None:
    with pytest.raises(KeyError):
        async with ResponsiveTimeout(LIMIT_S):
            raise KeyError
    await asyncio.sleep(2 * LIMIT_S)  # a timer left behind would cancel this
