"""Runs one of LangGraph's suites with our savers and stores: in `test_upstream`, or from the command line.

``ci/mysql run --fast -- .venv/bin/python -m tests.integration.integrations.langgraph.upstream.running PACKAGE DRIVER
-k prune`` runs a part; all arguments after the driver go to pytest. ``LOCUS_UPSTREAM_REPETITIONS=50`` runs each test 50
times. Then pass the names of test files, because pytest creates all tests 50 times before ``-k`` selects some.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from .sources import Suite, fetch, interpreter

#: The plugin is loaded from its folder, not its package, as LangGraph's tests and ours are both a package ``tests``.
PLUGINS = Path(__file__).resolve().parent
ROOT = PLUGINS.parents[4]

SUITES = (
    Suite("langgraph", "1.2.24", 1_041),
    Suite("langgraph-checkpoint", "4.3.2", 92),
    Suite("langgraph-checkpoint-postgres", "3.2.0", 135),
    Suite("langgraph-checkpoint-sqlite", "3.1.2", 167),
)

#: Processes of a run. Tests wait for the server and for each other most of the time.
PROCESSES = 3

#: A run that takes longer is ended with all its processes; a test that takes longer prints its stack.
LIMIT_S, TEST_LIMIT_S = 2_400, 900


class Outcome(NamedTuple):
    """The output of a run, and the number of tests that passed."""

    code: int
    output: str
    passed: int


def run(suite: Suite, driver: str, dsn: str, *arguments: str) -> Outcome:
    """Run a suite in separate processes, and end all of them afterwards.

    Args:
        suite: The suite.
        driver: The driver of our savers and stores.
        dsn: A server and an empty schema on it.
        arguments: Further arguments of pytest.
    """
    mode = "strict" if suite.package == "langgraph" else "auto"  # anyio runs the graph tests
    running = subprocess.Popen(
        [
            *(interpreter(), "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"),
            *("-o", "addopts=", "-o", f"faulthandler_timeout={TEST_LIMIT_S}", f"--asyncio-mode={mode}"),
            *("-o", "asyncio_default_fixture_loop_scope=function"),
            *("--snapshot-warn-unused", "-n", str(PROCESSES), "--durations=5", *arguments),
        ],
        cwd=fetch(suite),
        env={
            **os.environ,
            "NO_DOCKER": "true",
            "LANGGRAPH_STRICT_MSGPACK": "false",
            "PYTHONPATH": f"{ROOT}:{PLUGINS}",
            "PYTEST_ADDOPTS": "-p stand_in",
            "LOCUS_UPSTREAM_DSN": dsn,
            "LOCUS_UPSTREAM_DRIVER": driver,
            "LOCUS_UPSTREAM_PACKAGE": suite.package,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=LIMIT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    passed = re.search(r"(\d+) passed", output)
    return Outcome(running.returncode, output, 0 if passed is None else int(passed[1]))


def main(package: str, driver: str, *arguments: str) -> int:
    """Run a suite and print its output."""
    (suite,) = (suite for suite in SUITES if suite.package == package)
    outcome = run(suite, driver, os.environ["LOCUS_MYSQL_TEST_DSN"], *arguments)
    print(outcome.output)
    return outcome.code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
