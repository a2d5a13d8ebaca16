"""Choice of the idle connection to lend, ping or close."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.engine.idle import PING_AFTER_S, IdleConnections
from locus_mysql.engine.servers import ServerConnection

from .conftest import Clock


@pytest.fixture
def idle(clock: Clock) -> IdleConnections:
    return IdleConnections(MySQLConfig(pool_idle_s=60, pool_max_age_s=600), clock)


def opened(name: Any, opened_at: float) -> ServerConnection:
    """Return a new idle connection."""
    connection = ServerConnection(name, Endpoint("a", 3306), None)
    connection.opened_at = opened_at
    return connection


def test_the_connection_last_used_is_lent_first(idle: IdleConnections, clock: Clock) -> None:
    for name in ("first", "second"):
        idle.put(opened(name, clock.now))
    kept, ping, stale = idle.take()
    assert kept is not None
    assert (kept.connection, ping, stale) == ("second", False, [])
    assert idle.take()[0].connection == "first"  # type: ignore[union-attr]
    assert idle.take() == (None, False, [])


def test_one_in_steady_use_is_never_pinged_and_one_idle_for_a_while_is(idle: IdleConnections, clock: Clock) -> None:
    idle.put(opened("a", clock.now))
    clock.now += PING_AFTER_S
    assert idle.take()[1] is False
    idle.put(opened("a", clock.now))
    clock.now += PING_AFTER_S + 0.1
    assert idle.take()[1] is True


def test_a_connection_that_is_idle_too_long_or_too_old_is_closed(idle: IdleConnections, clock: Clock) -> None:
    idle.put(opened("old", clock.now - 601))
    idle.put(opened("idle", clock.now))
    clock.now += 61
    idle.put(opened("good", clock.now - 100))
    kept, _, stale = idle.take()
    assert kept is not None
    assert kept.connection == "good"
    assert {one.connection for one in stale} == {"old", "idle"}
    assert idle.take() == (None, False, [])


def test_age_counts_from_the_opening_however_often_it_is_used(idle: IdleConnections, clock: Clock) -> None:
    first = clock.now
    for _ in range(13):
        idle.put(opened("a", first))
        clock.now += 50
        kept, _, stale = idle.take()
        if clock.now - first > 600:
            assert kept is None
            assert len(stale) == 1
        else:
            assert kept is not None


def test_all_can_be_taken_to_be_closed(idle: IdleConnections, clock: Clock) -> None:
    for name in "abc":
        idle.put(opened(name, clock.now))
    assert [one.connection for one in idle.take_all()] == ["a", "b", "c"]
    assert idle.take_all() == []
