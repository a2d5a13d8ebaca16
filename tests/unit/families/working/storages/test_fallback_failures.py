"""Which failures of a primary are an outage, what is logged, and storages without a fallback or with several."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import pytest

from locus_mysql.errors import (
    CapacityExceeded,
    ConfigError,
    PrivilegeMissing,
    ReadOnlyServer,
    Unavailable,
)
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.working import FallbackStorage, SyncWorkingMemory, WorkingMemory

from .frail import DEADLINE_S, FallbackClient, Frail, call, values, variable


def test_writes_beyond_the_queue_limit_are_refused(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, max_pending=2)
    client.do(calls.Append(b"0"))
    client.goes()
    client.do(calls.ReadTask())
    client.ask(calls.Append(b"1"), calls.Append(b"2"))
    with pytest.raises(CapacityExceeded, match="max_pending"):
        client.do(calls.Append(b"3"))
    assert client.do(calls.ReadNotes()) == [b"0", b"1", b"2"]
    client.comes()
    client.do(calls.Append(b"4"))
    assert client.others(calls.ReadNotes()) == ([b"0", b"1", b"2", b"4"],)


def test_without_a_fallback_calls_are_refused_at_once(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, None, first_retry_s=3600, longest_retry_s=3600)
    client.do(calls.Append(b"1"))
    client.goes()
    with pytest.raises(Unavailable):
        client.do(calls.Append(b"2"))
    asked = len(client.primary.asked)
    with pytest.raises(Unavailable, match="not tried again yet"):
        client.do(calls.Append(b"3"))
    assert len(client.primary.asked) == asked
    client.comes()
    assert client.flush() == 0
    client.storage = client.make(client.primary, None)
    assert client.do(calls.ReadNotes()) == [b"1"]


@pytest.mark.parametrize("error", [Unavailable("."), TimeoutError(), ConnectionResetError()])
def test_without_a_fallback_every_kind_of_outage_is_unavailable(client: FallbackClient, error: Exception) -> None:
    client.storage = client.make(client.primary, None)
    client.primary.error = lambda: error
    client.goes()
    with pytest.raises(Unavailable):
        client.do(calls.Append(b"1"))
    assert client.storage.degraded


def test_without_a_fallback_a_primary_that_hangs_is_unavailable(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, None, timeout_s=0.05, threads=1)
    client.primary.hanging = True
    try:
        with pytest.raises(Unavailable, match=r"timeout_s is 0\.05.*not known"):
            client.do(calls.Append(b"1"))
        with pytest.raises(Unavailable):  # its only thread still hangs
            client.do(calls.Append(b"2"))
    finally:
        client.primary.hangs.set()


@pytest.mark.parametrize("error", [Unavailable("."), TimeoutError(), ConnectionResetError(), ReadOnlyServer(".")])
def test_several_kinds_of_failure_count_as_an_outage(client: FallbackClient, error: Exception) -> None:
    client.goes()
    client.primary.error = lambda: error
    client.do(calls.Append(b"1"))
    assert client.storage.degraded


@pytest.mark.parametrize("error", [PrivilegeMissing("."), CapacityExceeded("max_keys", 2, 1, "s")])
def test_other_errors_are_no_outage(client: FallbackClient, error: Exception) -> None:
    client.goes()
    client.primary.error = lambda: error
    with pytest.raises(type(error)):
        client.do(calls.Append(b"1"))
    assert not client.storage.degraded


def test_a_primary_that_hangs_is_given_up_on(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, timeout_s=0.05, first_retry_s=3600, longest_retry_s=3600)
    client.primary.hanging = True
    began = time.monotonic()
    client.do(calls.Append(b"1"))
    client.do(calls.Append(b"2"))
    assert client.do(calls.ReadNotes()) == [b"1", b"2"]
    assert time.monotonic() - began < DEADLINE_S / 2
    assert len(client.primary.asked) == 1
    client.primary.hanging = False
    client.primary.hangs.set()
    deadline = time.monotonic() + DEADLINE_S
    while client.flush():
        assert time.monotonic() < deadline
    assert client.others(calls.ReadNotes()) == ([b"1", b"2"],)


def test_one_outage_logs_one_warning_and_one_recovery(client: FallbackClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "locus_mysql.working")
    client.goes()
    for _ in range(5):
        client.do(calls.Append(b"1"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    client.comes()
    client.do(calls.Append(b"1"))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_fallbacks_can_have_fallbacks(client: FallbackClient) -> None:
    second = Frail()
    last = client.make(second)
    client.storage = client.make(client.primary, last)
    client.do(calls.Append(b"1"))
    client.goes()
    client.do(calls.Append(b"2"))
    second.away = True
    client.do(calls.Append(b"3"))
    assert client.do(calls.ReadNotes()) == [b"1", b"2", b"3"]
    second.away = False
    client.do(calls.Append(b"4"))
    assert client.do(calls.ReadNotes()) == [b"1", b"2", b"3", b"4"]
    assert second.kept.execute_blocking(call(calls.ReadNotes())).results == ([b"1", b"2", b"3", b"4"],)
    client.comes()
    assert client.do(calls.ReadNotes()) == [b"1", b"2", b"3", b"4"]
    assert client.others(calls.ReadNotes()) == ([b"1", b"2", b"3", b"4"],)
    assert second.kept.execute_blocking(call(calls.ReadNotes())).results == ([],)


def test_data_of_an_earlier_outage_is_removed_from_the_fallback(client: FallbackClient) -> None:
    second = Frail()
    client.storage = client.make(client.primary, second)
    client.do(calls.Write((variable("a", 1), variable("b", 1))))
    client.goes()
    client.do(calls.Write((variable("a", 2),)))
    second.execute_blocking(
        call(calls.Write((variable("left", 2),)))
    )  # so that it is not removed when the outage is over
    client.comes()
    client.do(calls.Write((variable("a", 3),)))
    client.do(calls.Remove(("b",)))
    assert set(second.kept.execute_blocking(call(calls.ReadAll())).results[0]) == {"a", "b", "left"}  # type: ignore[call-overload]
    client.goes()
    assert values(client.do(calls.ReadAll())) == {"a": b"3"}


def test_writes_of_other_processes_to_the_fallback_are_kept(client: FallbackClient) -> None:
    second = Frail()
    client.storage = client.make(client.primary, second)
    client.do(calls.Write((variable("a", 1), variable("b", 1))))
    second.execute_blocking(call(calls.Write((variable("a", 2),))))
    client.goes()
    assert values(client.do(calls.ReadAll())) == {"a": b"2", "b": b"1"}


def test_a_forked_child_leaves_queued_writes_to_its_parent(client: FallbackClient) -> None:
    client.goes()
    client.do(calls.Append(b"1"))
    parent = client.storage
    child = client.make(client.primary)
    child.__dict__.update(parent.__dict__)
    child.reset_in_child()
    assert (child.pending, parent.pending) == (0, 1)
    client.storage = child
    client.do(calls.Append(b"2"))
    client.comes()
    assert client.flush() == 0
    client.storage = parent
    assert client.flush() == 0
    assert client.others(calls.ReadNotes()) == ([b"2", b"1"],)


async def test_stats_show_an_outage() -> None:
    primary = Frail()
    storage = FallbackStorage(primary, first_retry_s=3600, longest_retry_s=3600)
    memory, blocking = WorkingMemory("s", storage), SyncWorkingMemory("s", storage)
    await memory.set("a", 1)
    assert (await memory.stats()).degraded is False
    primary.away = True
    await memory.set("a", 2)
    stats = await memory.stats()
    assert (stats.degraded, stats.pending, stats.lost) == (True, 1, ())
    assert blocking.stats() == stats
    primary.away = False
    assert await storage.flush() == 0
    assert (await memory.stats()).degraded is False


def test_closing_writes_queued_calls_or_logs_the_number_lost(
    client: FallbackClient, caplog: pytest.LogCaptureFixture
) -> None:
    def close() -> None:
        if client.loop:
            client.loop.run_until_complete(client.storage.aclose())
        else:
            client.storage.close()

    client.goes()
    client.do(calls.Append(b"1"))
    client.do(calls.Append(b"2"))
    close()
    assert "2 writes still wait" in caplog.text
    caplog.clear()
    client.comes()
    close()
    assert caplog.text == ""
    assert client.others(calls.ReadNotes()) == ([b"1", b"2"],)


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    primary = Frail()
    storage = FallbackStorage(primary, timeout_s=DEADLINE_S, first_retry_s=1e-9, longest_retry_s=1e-9)
    primary.hanging = True
    task = asyncio.create_task(storage.execute(call(calls.Append(b"1"))))
    await primary.arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    primary.hanging, primary.away = False, True
    await storage.execute(call(calls.Append(b"2")))
    primary.hanging, primary.away = True, False
    primary.arrived.clear()
    probe = asyncio.create_task(storage.execute(call(calls.ReadTask())))
    await primary.arrived.wait()
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    primary.hanging = False
    assert (await storage.execute(call(calls.ReadNotes()))).results == ([b"2"],)
    assert primary.kept.execute_blocking(call(calls.ReadNotes())).results == ([b"2"],)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FallbackStorage("mysql://"),  # type: ignore[arg-type]
        lambda: FallbackStorage(FallbackStorage(InMemoryStorage())),
        lambda: FallbackStorage(InMemoryStorage(), "disk"),  # type: ignore[arg-type]
        lambda: FallbackStorage(InMemoryStorage(), timeout_s=0),
        lambda: FallbackStorage(InMemoryStorage(), max_pending=0),
        lambda: FallbackStorage(InMemoryStorage(), jitter=1),
    ],
)
def test_wrong_options_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        wrong()
