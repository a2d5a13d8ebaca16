"""LangGraph's own tests of graphs, savers and stores, with ours in place of its own."""

from __future__ import annotations

import pytest

from ....conftest import MakeConfig
from .running import SUITES, run
from .sources import Suite

#: asyncmy has no synchronous side, which most of these tests use.
DRIVERS = ("pymysql", "mysql-connector", "aiomysql")


@pytest.mark.slow
@pytest.mark.xdist_group("langgraph-upstream")  # each run starts its own processes
@pytest.mark.kept_tables("graphs", "memories")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("suite", SUITES, ids=[suite.package for suite in SUITES])
def test_their_tests_pass_with_our_savers_and_stores(
    make_config: MakeConfig, server_dsn: str, database: str, suite: Suite, driver: str
) -> None:
    dsn = f"{server_dsn.rpartition('/')[0]}/{database}"
    assert make_config(dsn=dsn, driver=driver).database == database
    outcome = run(suite, driver, dsn)
    assert outcome.code == 0, outcome.output[-20_000:]
    assert outcome.passed >= suite.least, outcome.output[-5_000:]
