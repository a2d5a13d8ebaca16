"""Tests of one ``xdist_group`` run in one process, as they share a server or a browser that is costly to start."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("shown")
def test_the_scheduler_sees_the_group_of_a_test(request: pytest.FixtureRequest) -> None:
    in_groups = request.config.getoption("loadgroup", default=False)
    assert request.node.nodeid.endswith("@shown") or not in_groups
