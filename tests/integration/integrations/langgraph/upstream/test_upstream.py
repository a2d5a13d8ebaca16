"""LangGraph's own tests of graphs, savers and stores, with ours in place of its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from locus_mysql import MySQLConfig

from ....conftest import MakeConfig
from .sources import Suite, fetch, interpreter

#: A folder of its own on the path, as both their tests and ours are a package ``tests``.
PLUGINS = Path(__file__).resolve().parent

SUITES = (
    Suite("langgraph", "1.2.22", 1_000),
    Suite("langgraph-checkpoint", "4.3.2", 1),
    Suite("langgraph-checkpoint-postgres", "3.2.0", 1),
    Suite("langgraph-checkpoint-sqlite", "3.1.2", 1),
)

#: asyncmy has no synchronous side, which most of these tests use.
DRIVERS = ("pymysql", "mysql-connector", "aiomysql")

LIMIT_S = 3_600


@pytest.mark.slow
@pytest.mark.kept_tables("versions", "memories")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("suite", SUITES, ids=[suite.package for suite in SUITES])
def test_their_tests_pass_with_our_savers_and_stores(
    make_config: MakeConfig, server_dsn: str, database: str, suite: Suite, driver: str
) -> None:
    make_config(driver=driver)
    folder, python = fetch(suite), interpreter()
    dsn = f"{server_dsn.rpartition('/')[0]}/{database}"
    assert MySQLConfig(dsn=dsn).database == database
    mode = "strict" if suite.package == "langgraph" else "auto"  # its graph tests run by anyio
    ran = subprocess.run(
        [python, "-m", "pytest", "-q", "--no-header", "--tb=short", "-o", "addopts=", f"--asyncio-mode={mode}"],
        cwd=folder,
        env={
            **os.environ,
            "NO_DOCKER": "true",
            "LANGGRAPH_STRICT_MSGPACK": "false",
            "PYTHONPATH": str(PLUGINS),
            "PYTEST_ADDOPTS": "-p stand_in",
            "LOCUS_UPSTREAM_DSN": dsn,
            "LOCUS_UPSTREAM_DRIVER": driver,
            "LOCUS_UPSTREAM_PACKAGE": suite.package,
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-5_000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None, ran.stdout[-5_000:]
    assert int(passed[1]) >= suite.least
