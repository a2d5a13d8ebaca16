"""Which call waits too long for an answer."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.engine.watch import REST_AFTER_S, SUSPICION_S, Calls

from .conftest import Clock


@pytest.fixture
def calls(clock: Clock) -> Calls[Any]:
    return Calls(clock)


def test_only_a_call_that_waits_for_long_makes_its_server_suspect(calls: Calls[Any], clock: Clock) -> None:
    calls.begin("slow")
    assert calls.suspect() is None
    clock.now += SUSPICION_S + 0.1
    calls.begin("quick")
    assert calls.suspect() == "slow"
    assert calls.waiting() == ["slow", "quick"]
    calls.end("slow")
    assert calls.suspect() is None
    assert calls.waiting() == ["quick"]


def test_a_connection_that_makes_another_call_waits_anew(calls: Calls[Any], clock: Clock) -> None:
    calls.begin("one")
    clock.now += SUSPICION_S
    calls.end("one")
    calls.begin("one")
    clock.now += SUSPICION_S - 0.1
    assert calls.suspect() is None


def test_it_is_at_rest_once_there_was_no_call_for_a_while(calls: Calls[Any], clock: Clock) -> None:
    calls.begin("one")
    clock.now += REST_AFTER_S + 1
    assert not calls.at_rest()
    calls.end("one")
    assert calls.at_rest()
    calls.begin("two")
    calls.end("two")
    assert not calls.at_rest()
