"""Runs the tests of CrewAI's classes in an environment that has it, on this server."""

from __future__ import annotations

import re
import subprocess

import pytest

from ci.framework_suites import ROOT, SUITES, interpreter

#: The tests in `own`, and those of all classes that are about CrewAI's.
TESTS = ("crewai/own", "test_every_store.py", "test_options.py")


@pytest.mark.slow
@pytest.mark.xdist_group("crewai")  # it makes the environment
def test_the_classes_for_crewai_pass_their_tests() -> None:
    python = interpreter(SUITES["crewai"][0])
    paths = [f"tests/integration/integrations/{one}" for one in TESTS]
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-o", "filterwarnings=", "-k", "crew"]
    done = subprocess.run(
        [python, "-m", "pytest", *options, *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 24
