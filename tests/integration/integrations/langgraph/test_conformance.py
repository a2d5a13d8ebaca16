"""LangGraph's own conformance suite passes: all eight capabilities, for both savers and every driver."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from langgraph.checkpoint.conformance import validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer

from ...conftest import EACH_WAY
from .conftest import OpenSaver

#: The number of tests of each capability in version 0.0.2: a lower count means that some did not run.
TESTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


@pytest.mark.slow
@pytest.mark.parametrize("side", EACH_WAY)
async def test_every_capability_conforms(open_saver: OpenSaver, side: str) -> None:
    async def factory() -> AsyncGenerator[Any, None]:
        yield open_saver(side)

    report = await validate(RegisteredCheckpointer(name=side, factory=factory))
    assert set(report.results) == {capability.value for capability in Capability} == set(TESTS)
    for name, result in report.results.items():
        assert result.failures in (None, []), (name, result.failures)
        assert result.passed is True, name
        assert result.tests_passed >= TESTS[name], name
