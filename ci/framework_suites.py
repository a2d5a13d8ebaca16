"""Runs the tests that a framework ships with our classes: in tests, in the demo, or from the command line.

``ci/mysql run --fast -- .venv/bin/python -m ci.framework_suites openai-agents 0.24.0 aiomysql -k limit`` runs a part;
all arguments after the driver go to pytest. The tests come from the framework's source distribution and are kept in
``.cache/framework-suites``; no part of them belongs to this repository. A plugin of pytest gives them our classes, and
leaves out the tests that are listed with a reason in the module ``left_out`` beside it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from locus_mysql.config import MySQLConfig

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache/framework-suites"

#: A run that takes longer is ended with all its processes.
LIMIT_S = 600


class Framework(NamedTuple):
    """The tests of a framework.

    Args:
        package: Its distribution.
        plugins: The folder of the plugin ``stand_in`` and of ``left_out``, in ``tests/integration/integrations``. The
            plugin is loaded from its folder, not its package, as the framework's tests and ours are both in ``tests``.
        files: The files with tests of what our classes stand for.
        needs: Further distributions that these tests import.
        alone: Whether the framework is installed without its requirements, which are those of the newest version.
        bare: Further distributions that are installed without their requirements.
    """

    package: str
    plugins: str
    files: tuple[str, ...]
    needs: tuple[str, ...]
    alone: bool = False
    bare: tuple[str, ...] = ()


class Suite(NamedTuple):
    """The tests of one version.

    Args:
        framework: The framework.
        version: The version.
        least: The number of tests that must pass, so that a growing list of left-out tests is detected.
    """

    framework: Framework
    version: str
    least: int

    @property
    def name(self) -> str:
        """The framework and the version."""
        return f"{self.framework.package} {self.version}"

    @property
    def folder(self) -> Path:
        """The unpacked source distribution."""
        return CACHE / f"{self.framework.package.replace('-', '_')}-{self.version}"


OPENAI_AGENTS = Framework(
    "openai-agents",
    "openai_agents/upstream",
    (
        "tests/memory/test_session.py",
        "tests/memory/test_session_limit.py",
        "tests/extensions/memory/test_sqlalchemy_session.py",
        "tests/extensions/memory/test_advanced_sqlite_session.py",
    ),
    ("sqlalchemy[asyncio]", "aiosqlite"),
)
STRANDS = Framework(
    "strands-agents",
    "strands/upstream",
    (
        "tests/strands/storage/test_storage.py",
        "tests/strands/storage/test_in_memory_storage.py",
        "tests/strands/storage/test_local_file_storage.py",
        "tests/strands/storage/search/test_keyword.py",
        "tests/strands/session/test_snapshot_session_manager.py",
        "tests/strands/session/test_repository_session_manager.py",
        "tests/strands/session/test_file_session_manager.py",
        "tests/strands/vended_memory_stores/file_memory_store/test_store.py",
    ),
    ("moto>=5.1,<6",),  # which their conftest imports
    alone=True,
)
#: Its requirements exclude those of other frameworks, and take 1 GB. These are what its flows and its memory import.
CREWAI = Framework(
    "crewai",
    "crewai/upstream",
    (
        "tests/test_flow_persistence.py",
        "tests/test_async_human_feedback.py",
        "tests/memory/test_dimension_mismatch.py",
        "tests/memory/test_lancedb_filter_escaping.py",
        "tests/memory/test_lancedb_update.py",
        "tests/memory/test_unified_memory.py",
    ),
    (),
    alone=True,
    bare=(
        *("crewai-core", "appdirs", "jsonref", "json5", "json-repair", "portalocker", "aiofiles", "aiosqlite", "tomli"),
        *("chromadb>=1.5.9,<1.6", "overrides", "pybase64", "bcrypt", "grpcio", "protobuf", "googleapis-common-protos"),
        *("opentelemetry-exporter-otlp-proto-http", "opentelemetry-exporter-otlp-proto-grpc", "opentelemetry-proto"),
        *("opentelemetry-exporter-otlp-common", "opentelemetry-exporter-otlp-proto-common"),
        "opentelemetry-exporter-http-transport",
    ),
)

#: For each framework, the newest tested version and the oldest: of the OpenAI Agents SDK, the oldest that can run
#: agents with the versions of openai that it allows; of Strands, the oldest whose storages take a search strategy.
SUITES: Mapping[str, tuple[Suite, ...]] = {
    "openai-agents": (Suite(OPENAI_AGENTS, "0.24.0", 151), Suite(OPENAI_AGENTS, "0.18.1", 92)),
    "crewai": (Suite(CREWAI, "1.15.30", 175),),
    "strands-agents": (Suite(STRANDS, "1.62.0", 321), Suite(STRANDS, "1.57.0", 263)),
}


class Outcome(NamedTuple):
    """The output of a run, and the number of tests that passed."""

    code: int
    output: str
    passed: int


def run(suite: Suite, config: MySQLConfig, *arguments: str) -> Outcome:
    """Run a suite in a separate process, and end that process afterwards.

    Args:
        suite: The suite.
        config: The driver, the server, and the schema in which tables are created.
        arguments: Further arguments of pytest.
    """
    (endpoint, *_) = config.endpoints
    plugins = ROOT / "tests/integration/integrations" / suite.framework.plugins
    options = {
        "driver": config.driver,
        "host": endpoint.host,
        "port": endpoint.port,
        "user": config.user,
        "password": config.password.get_secret_value(),
        "database": config.database,
        "table_prefix": config.table_prefix,
    }
    python, folder = interpreter(suite), _fetch(suite)
    running = subprocess.Popen(  # noqa: S603 - a program of this project
        [
            *(python, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-o", "addopts="),
            *("-o", "filterwarnings=", "--asyncio-mode=auto", *suite.framework.files, *arguments),
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{plugins}",
            "PYTEST_ADDOPTS": "-p stand_in",
            "LOCUS_UPSTREAM_OPTIONS": json.dumps(options),
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
        package = suite.framework.package
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            wanted = f"{package}=={suite.version}"
            _pip("download", "--no-deps", "--no-binary", package, "--dest", folder, wanted)
            (archive,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            (Path(folder) / suite.folder.name).rename(suite.folder)
    return suite.folder


def interpreter(suite: Suite) -> Path:
    """Return a Python with this version of the framework, and otherwise the packages of the running one."""
    framework = suite.framework
    folder = CACHE / f"venv-{framework.package}-{suite.version}"
    python = folder / "bin/python"
    if not (folder / "complete").exists():
        venv.create(folder, clear=True)
        ours = sysconfig.get_paths()["purelib"]
        theirs = Path(sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"])
        (theirs / "beneath.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        runners = [name for name in ("pytest", "pytest_asyncio") if importlib.util.find_spec(name) is None]
        wanted, needs = f"{framework.package}=={suite.version}", [*framework.needs, *runners]
        if framework.alone:
            _pip("install", "--target", str(theirs), "--no-deps", wanted, *framework.bare)
            if needs:
                _pip("install", "--target", str(theirs), *needs)
        else:
            _pip("install", "--target", str(theirs), wanted, *needs)
        (folder / "complete").touch()
    return python


def _pip(*arguments: str) -> None:
    """Run pip. Its warnings about the other packages of this environment are shown only if it fails."""
    command = [sys.executable, "-m", "pip", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the same
    if done.returncode:
        raise RuntimeError(f"pip {' '.join(arguments)} failed:\n{done.stderr}")


def main(package: str, version: str, driver: str, *arguments: str) -> int:
    """Run a suite and print its output."""
    (suite,) = (suite for suite in SUITES[package] if suite.version == version)
    outcome = run(suite, MySQLConfig(dsn=os.environ["LOCUS_MYSQL_TEST_DSN"], driver=driver), *arguments)
    print(outcome.output)
    return outcome.code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
