"""CrewAI's own tests of flows and memory, with our classes in place of its own."""

from __future__ import annotations

import pytest

from ci.framework_suites import SUITES, Suite, run

from ....conftest import MakeConfig
from ....drivers_under_test import SYNC_DRIVERS


@pytest.mark.slow
@pytest.mark.xdist_group("crewai")  # each run starts its own processes
@pytest.mark.kept_tables("dicts", "memories")
@pytest.mark.parametrize("driver", SYNC_DRIVERS)
@pytest.mark.parametrize("suite", SUITES["crewai"], ids=lambda suite: suite.version)
def test_their_tests_pass_with_our_classes(make_config: MakeConfig, suite: Suite, driver: str) -> None:
    outcome = run(suite, make_config(driver=driver))
    assert outcome.code == 0, outcome.output[-20_000:]
    assert outcome.passed >= suite.least, outcome.output[-5_000:]
