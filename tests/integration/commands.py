"""Fixtures that run commands on the schema of the module's `config`, and `dsn_of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import quote

import pytest

from locus_mysql.cli import main as cli
from locus_mysql.config import MySQLConfig

#: Runs a command, and returns its exit code, its standard output and its standard error.
Run: TypeAlias = Callable[..., tuple[int, str, str]]

#: Runs a command, which must succeed, and returns its standard output.
Succeed: TypeAlias = Callable[..., str]


def dsn_of(config: MySQLConfig) -> str:
    """Return the DSN of a configuration with one host."""
    (endpoint,) = config.endpoints
    password = quote(config.password.get_secret_value(), safe="")
    return f"mysql://{quote(config.user, safe='')}:{password}@{endpoint.host}:{endpoint.port}/{config.database}"


@pytest.fixture
def run(config: MySQLConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = cli.main(arguments)
        except SystemExit as stop:  # raised by argparse
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def succeed(run: Run) -> Succeed:
    def succeed(*arguments: str) -> str:
        code, out, errors = run(*arguments)
        assert code == 0, errors
        return out

    return succeed
