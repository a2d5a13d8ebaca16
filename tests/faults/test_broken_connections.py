"""Broken connections, restarts and silent servers: every call succeeds or raises an error with advice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ci.local_server import LocalServer
from locus_mysql.errors import Unavailable

from ..integration.conftest import EACH_WAY, ONE_OF_EACH, MakeConfig, OpenStore
from ..integration.proxy import WireProxy
from ..waiting import until

RunSQL = Callable[..., tuple[Any, ...]]
State = dict[str, Any]
DEADLINE_S = 180.0

each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


def state_of(turns: int) -> State:
    return {"turns": turns, "messages": [{"content": f"turn {turn} " * 50} for turn in range(turns)]}


# Connections that break


@one_of_each
@pytest.mark.parametrize("fault", ["drop_before", "drop_after_send"])
async def test_the_first_call_survives_a_break_at_any_packet(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str, fault: str
) -> None:
    with proxy.counting() as undisturbed:
        await open_store(side, config=through_proxy()).save("thread", state_of(1))
    connecting = 2  # session setup; a break there on the first connection is reported at once
    for packet in range(connecting + 1, undisturbed.commands + 1):
        store = open_store(side, config=through_proxy())
        getattr(proxy, fault)(packet)
        await store.save(f"thread {packet}", state_of(packet))
        assert await store.load(f"thread {packet}") == state_of(packet)
        assert len(await store.list_checkpoints(f"thread {packet}")) == 1


@one_of_each
async def test_connections_that_the_server_closed_as_idle_are_replaced(
    open_store: OpenStore, run_sql: RunSQL, own_config: MakeConfig, own_sql: RunSQL, side: str
) -> None:
    own_sql("SET GLOBAL wait_timeout = 1")
    try:
        config = own_config()
        store = open_store(side, config=config)
        await store.save("thread", state_of(1))
        await until(
            lambda: not own_sql("SELECT 1 FROM performance_schema.threads WHERE processlist_db = %s", config.database),
            "the server closes the idle connection",
        )
        await store.save("thread", state_of(2))
        assert await store.load("thread") == state_of(2)
    finally:
        own_sql("SET GLOBAL wait_timeout = 28800")


@pytest.mark.slow
@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "killed"])
@one_of_each
async def test_savers_continue_after_a_server_restart(
    open_store: OpenStore, own_server: LocalServer, own_config: MakeConfig, side: str, crash: bool
) -> None:
    """Acknowledged saves survive, even if the server was killed."""
    store = open_store(side, config=own_config())
    await store.save("thread", state_of(1), "c1")
    stop = threading.Event()

    def restart() -> None:
        own_server.restart(crash=crash)
        stop.set()

    saved = {"c1": 1}
    restarting = threading.Thread(target=restart)
    restarting.start()
    while not stop.is_set() or len(saved) < 5:
        turn = len(saved) + 1
        await store.save("thread", state_of(turn % 40), f"c{turn}")
        saved[f"c{turn}"] = turn % 40
    restarting.join()
    assert sorted(await store.list_checkpoints("thread", 100_000)) == sorted(saved)
    newest = f"c{len(saved)}"
    assert await store.load("thread", newest) == state_of(saved[newest])


# A server that does not answer


@each_way
async def test_a_server_that_stops_answering_is_unavailable_within_the_timeouts(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    options = {"connect_timeout_s": 1.5, "read_timeout_s": 1.5, "write_timeout_s": 1.5, "retry_deadline_s": 3.0}
    store = open_store(side, config=through_proxy(**options))
    await store.save("thread", state_of(1))
    proxy.black_hole()
    began = time.monotonic()
    with pytest.raises(Unavailable, match=f"127.0.0.1:{proxy.port}"):
        await store.save("thread", state_of(2))
    assert time.monotonic() - began < 25  # allows for a slow machine; the default limits would take minutes
    proxy.resume()
    await store.save("thread", state_of(3))
    assert await store.load("thread") == state_of(3)


@one_of_each
async def test_a_server_that_never_answered_is_reported_at_once(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    proxy.black_hole()
    store = open_store(side, config=through_proxy(connect_timeout_s=0.3, retry_deadline_s=60))
    began = time.monotonic()
    with pytest.raises(Unavailable):
        await store.save("thread", state_of(1))
    assert time.monotonic() - began < 25
    proxy.resume()
