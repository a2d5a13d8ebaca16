"""The last part of a chapter on a framework that ships tests: these tests, run with our classes."""

from __future__ import annotations

import asyncio
import os

from ci.framework_suites import SUITES, run
from locus_mysql.config import MySQLConfig

from .display import Screen


async def own_suite(screen: Screen, config: MySQLConfig, package: str) -> None:
    """Fetch and run the tests of a framework's newest tested version, and show their result.

    Not with ``LOCUS_DEMO_QUICK=true``, as the first time takes minutes.

    Args:
        screen: Where it is shown.
        config: The server, the driver, and the tables of the chapter.
        package: The framework's distribution.
    """
    if os.environ.get("LOCUS_DEMO_QUICK") == "true":
        return
    (suite, *_) = SUITES[package]
    screen.section("The framework's own tests, run with these classes in place of its own")
    outcome = await asyncio.to_thread(run, suite, config)
    screen.line("tests", f"{suite.name}: {outcome.passed} passed")
    last = outcome.output.strip().splitlines()[-1:] if outcome.code else []
    screen.check(
        not outcome.code and outcome.passed >= suite.least, f"no test failed{''.join(f': {line:.70}' for line in last)}"
    )
