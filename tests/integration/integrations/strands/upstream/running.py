"""Runs the framework's tests of storages and repositories with ours: in `test_upstream`, or from the command line.

``ci/mysql run --fast -- .venv/bin/python -m tests.integration.integrations.strands.upstream.running VERSION
DRIVER -k list`` runs a part; all arguments after the driver go to pytest. The tests come from the framework's source
distribution and are kept in ``.cache/strands-tests``; no part of them belongs to this repository.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

#: The plugin is loaded from its folder, not its package, as the framework's tests and ours are both in ``tests``.
PLUGINS = Path(__file__).resolve().parent
ROOT = PLUGINS.parents[4]
CACHE = ROOT / ".cache/strands-tests"

#: A run that takes longer is ended with all its processes.
LIMIT_S = 600


class Suite(NamedTuple):
    """The tests of one version.

    Args:
        version: The version.
        least: The number of tests that must pass, so that a growing list of left-out tests is detected.
    """

    version: str
    least: int

    @property
    def folder(self) -> Path:
        """The unpacked source distribution."""
        return CACHE / f"strands_agents-{self.version}"


#: The newest tested version, and the oldest whose storages take a search strategy.
SUITES = (Suite("1.62.0", 321), Suite("1.57.0", 261))

#: The files with tests of storages, of session repositories, and of what uses them.
FILES = (
    "tests/strands/storage/test_storage.py",
    "tests/strands/storage/test_in_memory_storage.py",
    "tests/strands/storage/test_local_file_storage.py",
    "tests/strands/storage/search/test_keyword.py",
    "tests/strands/session/test_snapshot_session_manager.py",
    "tests/strands/session/test_repository_session_manager.py",
    "tests/strands/session/test_file_session_manager.py",
    "tests/strands/vended_memory_stores/file_memory_store/test_store.py",
)


class Outcome(NamedTuple):
    """The output of a run, and the number of tests that passed."""

    code: int
    output: str
    passed: int


def run(suite: Suite, driver: str, dsn: str, *arguments: str) -> Outcome:
    """Run a suite in a separate process, and end that process afterwards.

    Args:
        suite: The suite.
        driver: The driver of our sessions.
        dsn: A server and an empty schema on it.
        arguments: Further arguments of pytest.
    """
    running = subprocess.Popen(
        [
            *(_interpreter(suite), "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"),
            *("-o", "addopts=", "-o", "filterwarnings=", "--asyncio-mode=auto", *FILES, *arguments),
        ],
        cwd=_fetch(suite),
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{PLUGINS}",
            "PYTEST_ADDOPTS": "-p stand_in",
            "LOCUS_UPSTREAM_DSN": dsn,
            "LOCUS_UPSTREAM_DRIVER": driver,
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


def _fetch(suite: Suite) -> Path:
    """Return the folder of a suite; download it from the package index if it is missing."""
    if not (suite.folder / "tests").is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            wanted = f"strands-agents=={suite.version}"
            _pip("download", "--no-deps", "--no-binary", "strands-agents", "--dest", folder, wanted)
            (archive,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            (Path(folder) / suite.folder.name).rename(suite.folder)
    return suite.folder


def _interpreter(suite: Suite) -> Path:
    """Return a Python with this version of the framework, and otherwise the packages of the running one."""
    folder = CACHE / f"venv-{suite.version}"
    python = folder / "bin/python"
    if not (folder / "complete").exists():
        venv.create(folder, clear=True)
        ours = sysconfig.get_paths()["purelib"]
        theirs = Path(sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"])
        (theirs / "beneath.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        _pip("install", "--target", str(theirs), "--no-deps", f"strands-agents=={suite.version}")
        _pip("install", "--target", str(theirs), "moto>=5.1,<6")  # which their conftest imports
        (folder / "complete").touch()
    return python


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def main(version: str, driver: str, *arguments: str) -> int:
    """Run a suite and print its output."""
    (suite,) = (suite for suite in SUITES if suite.version == version)
    outcome = run(suite, driver, os.environ["LOCUS_MYSQL_TEST_DSN"], *arguments)
    print(outcome.output)
    return outcome.code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
