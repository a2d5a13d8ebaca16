"""The framework's own tests of the newest and of the oldest supported version, with our classes in place of its own."""

from __future__ import annotations

import pytest

from ....conftest import MakeConfig
from ....drivers_under_test import ASYNC_DRIVERS
from .running import SUITES, Suite, run


@pytest.mark.slow
@pytest.mark.xdist_group("strands-upstream")  # each run starts its own processes
@pytest.mark.kept_tables("dicts", "transcripts")
@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
@pytest.mark.parametrize("suite", SUITES, ids=[suite.version for suite in SUITES])
def test_their_tests_pass_with_our_classes(
    make_config: MakeConfig, server_dsn: str, database: str, suite: Suite, driver: str
) -> None:
    dsn = f"{server_dsn.rpartition('/')[0]}/{database}"
    assert make_config(dsn=dsn, driver=driver).database == database
    outcome = run(suite, driver, dsn)
    assert outcome.code == 0, outcome.output[-20_000:]
    assert outcome.passed >= suite.least, outcome.output[-5_000:]
