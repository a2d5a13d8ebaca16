"""The framework's own tests of the newest and of the oldest supported version, with our classes in place of its own."""

from __future__ import annotations

import pytest

from ci.framework_suites import SUITES, Suite, run

from ....conftest import MakeConfig
from ....drivers_under_test import ASYNC_DRIVERS


@pytest.mark.slow
@pytest.mark.xdist_group("strands-upstream")  # each run starts its own processes
@pytest.mark.kept_tables("dicts", "transcripts")
@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
@pytest.mark.parametrize("suite", SUITES["strands-agents"], ids=lambda suite: suite.version)
def test_their_tests_pass_with_our_classes(make_config: MakeConfig, suite: Suite, driver: str) -> None:
    outcome = run(suite, make_config(driver=driver))
    assert outcome.code == 0, outcome.output[-20_000:]
    assert outcome.passed >= suite.least, outcome.output[-5_000:]
