"""Lookup of drivers by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from locus_mysql import CheckpointStore, SyncCheckpointStore, SyncMemoryStore, WorkingMemory, extras
from locus_mysql.cli.main import main
from locus_mysql.config import MySQLConfig
from locus_mysql.drivers import interface
from locus_mysql.drivers.interface import find_driver, register_driver
from locus_mysql.errors import ConfigError, DriverMissing


class StubDriver:
    """A driver of another package."""

    name = "stub"


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "_drivers", {})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The installed libraries."""
    libraries: set[str] = set()
    for module in (extras, interface):
        monkeypatch.setattr(module, "is_installed", libraries.__contains__)
    return libraries


def test_a_missing_library_is_answered_with_the_extra_and_the_installed_drivers(installed: set[str]) -> None:
    installed |= {"aiomysql", "pymysql"}
    with pytest.raises(DriverMissing, match=r"pip install 'locus-mysql\[asyncmy\]'.*aiomysql, pymysql"):
        find_driver("asyncmy")


def test_the_error_without_any_library_names_the_extra(installed: set[str]) -> None:
    with pytest.raises(DriverMissing, match=r"locus-mysql\[mysql-connector\].*No other"):
        find_driver("mysql-connector")


@pytest.mark.parametrize(
    ("libraries", "driver"),
    [
        ({"pymysql"}, "pymysql"),
        ({"asyncmy"}, "asyncmy"),
        ({"aiomysql", "pymysql"}, "aiomysql"),  # aiomysql depends on PyMySQL
        ({"asyncmy", "pymysql"}, "mysql-connector"),
        ({"mysql.connector", "pymysql"}, "mysql-connector"),
        (set(), "mysql-connector"),
    ],
)
def test_without_a_named_driver_the_only_installed_one_is_used(
    installed: set[str], libraries: set[str], driver: str
) -> None:
    installed |= libraries
    assert MySQLConfig(dsn="mysql://u@h/d").driver == driver
    assert MySQLConfig.from_env({"LOCUS_MYSQL_HOST": "h"}).driver == driver
    assert MySQLConfig(dsn="mysql+asyncmy://u@h/d").driver == "asyncmy"
    assert MySQLConfig(driver="mysql-connector").driver == "mysql-connector"


def test_a_replacement_needs_no_library_of_ours(installed: set[str]) -> None:
    stub = StubDriver()
    register_driver("asyncmy", stub)  # type: ignore[arg-type]
    assert find_driver("asyncmy") is stub


def test_asyncmy_s_error_names_the_drivers_with_a_synchronous_side() -> None:
    config = MySQLConfig(driver="asyncmy")
    with pytest.raises(ConfigError, match="mysql-connector, pymysql or aiomysql"):
        find_driver("asyncmy").connect(config, config.endpoints[0])


def test_finding_a_driver_imports_no_client_library() -> None:
    script = (
        "import sys; from locus_mysql.drivers.interface import find_driver;"
        "[find_driver(name) for name in ('mysql-connector', 'aiomysql', 'pymysql', 'asyncmy')];"
        # find_spec imports mysql.connector's parent, which is empty
        "print([m for m in ('mysql.connector', 'aiomysql', 'pymysql', 'asyncmy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.mark.parametrize("kind", [CheckpointStore, SyncCheckpointStore, SyncMemoryStore, WorkingMemory])
def test_a_store_refuses_an_unknown_driver_before_its_first_call(kind: Callable[..., object]) -> None:
    named = ("session",) if kind is WorkingMemory else ()
    with pytest.raises(ConfigError, match=r"no driver 'oracle'\. Known: aiomysql, asyncmy, mysql-connector, pymysql"):
        kind(*named, MySQLConfig(driver="oracle"))


@pytest.mark.parametrize("command", [["health"], ["threads"], ["vacuum", "--older-than-days", "1"]])
def test_a_command_refuses_an_unknown_driver_and_names_the_known_ones(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--dsn", "mysql://user:password@localhost/app?driver=oracle"]) != 0
    assert "no driver 'oracle'. Known: aiomysql, asyncmy, mysql-connector, pymysql" in capsys.readouterr().err
