"""No request of one tenant delays those of another: every operation, with inputs as large as a test allows."""

from __future__ import annotations

import time

import pytest

from bench.stalls import (
    ASKING,
    BOUND_MS,
    IDLE_S,
    Asking,
    Client,
    Largest,
    expect,
    in_order,
    more_cases,
    one_case,
    operations,
    store_graph,
    two_tenants,
)

from ..commands import dsn_of
from ..conftest import MakeConfig

#: Fraction of the largest inputs: large enough to run in a separate process, and to reveal superlinear cost.
SCALE = 0.02

#: Minimum measuring time of each operation, in seconds.
LEAST_S = 0.02

#: A wait counts only if it occurs in every one of this many attempts, as the machine runs other programs too.
ATTEMPTS = 4

#: The longest allowed wait as a multiple of the longest wait on an idle service, if that exceeds the bound.
TIMES_IDLE = 4.0


def test_every_operation_has_a_largest_request() -> None:
    assert set(Largest(SCALE).calls) == set(operations())


@pytest.mark.slow
def test_no_operation_of_one_tenant_keeps_another_one_waiting(make_config: MakeConfig) -> None:
    dsn = dsn_of(make_config())
    largest = Largest(SCALE)
    with two_tenants(dsn.partition("?")[0]) as (port, noisy, quiet):
        client = Client(port, noisy)
        largest.store(client)
        store_graph(dsn, 50)
        expect(Client(port, quiet).send("POST", "/threads/quiet/checkpoints", {"state": {"a": 1}}), 200)
        with Asking(ASKING, str(port), quiet) as asking:
            time.sleep(IDLE_S)  # a measurement, not a wait for a condition
            bound_ms = max(BOUND_MS, TIMES_IDLE * asking.longest())
            cases = {key: largest.calls[key] for key in in_order(operations())} | more_cases(SCALE)
            slow = {}
            for (method, template), call in cases.items():
                for _ in range(ATTEMPTS):
                    case = one_case(client, asking, method, template, call, LEAST_S)
                    if max(case["one_ms"], case["many_ms"]) <= bound_ms:
                        break
                else:
                    slow[f"{method} {template}"] = case
        assert not slow, f"with a bound of {bound_ms:.0f} ms"
