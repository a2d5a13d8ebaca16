"""Drivers by name: those of this package, each imported when it is first looked up, and registered external ones."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from ..errors import ConfigError, DriverMissing
from ..extras import install_command
from ..suggestions import did_you_mean
from .interface import Driver


class _Home(NamedTuple):
    """Where a driver of this package is.

    Args:
        library: The module that must be installed.
        module: The module in the folder `libraries`.
        driver: Its class.
    """

    library: str
    module: str
    driver: str


_HOMES = {
    "mysql-connector": _Home("mysql.connector", "mysql_connector", "MySQLConnectorDriver"),
    "aiomysql": _Home("aiomysql", "aiomysql", "AiomysqlDriver"),
    "pymysql": _Home("pymysql", "pymysql", "PyMySQLDriver"),
    "asyncmy": _Home("asyncmy", "asyncmy", "AsyncmyDriver"),
}

#: Registered drivers, and those of this package that were looked up.
_drivers: dict[str, Driver] = {}


def register_driver(name: str, driver: Driver) -> None:
    """Make ``ConnectionOptions(driver=name)`` use an external driver. It replaces one that has the same name.

    Args:
        name: The name to configure.
        driver: Opens the connections.
    """
    _drivers[name] = driver


def find_driver(name: str) -> Driver:
    """Return the driver with this name. Checks that its library is installed, without importing it.

    Raises:
        ConfigError: No driver has this name.
        DriverMissing: The driver's library is not installed.
    """
    driver = _drivers.get(name)
    if driver is not None:
        return driver
    home = _HOMES.get(name)
    if home is None:
        known = sorted({*_HOMES, *_drivers})
        raise ConfigError(
            f"There is no driver {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}; register_driver adds "
            "others."
        )
    if not _is_installed(home.library):
        installed = [other for other, its_home in _HOMES.items() if _is_installed(its_home.library)]
        advice = (
            f"Installed: {', '.join(installed)}; to use it, set driver={installed[0]!r}, or "
            f"?driver={installed[0]} in the DSN."
            if installed
            else "No other driver's is installed either."
        )
        raise DriverMissing(f"The library of driver {name!r} is not installed. Run {install_command(name)}. {advice}")
    module = import_module(f".libraries.{home.module}", __package__)
    made: Driver = getattr(module, home.driver)()
    return _drivers.setdefault(name, made)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # the parent package is missing, or is not a package
        return False
