"""Drivers by name: those of this package, each imported when it is first looked up, and registered external ones."""

from __future__ import annotations

from importlib import import_module

from ..errors import ConfigError, DriverMissing
from ..extras import CLIENT_LIBRARIES, install_command, installed_drivers, is_installed
from ..wording import did_you_mean
from .interface import Driver

#: The module in the folder `libraries` and the class of each driver of this package.
_HOMES = {
    "mysql-connector": ("mysql_connector", "MySQLConnectorDriver"),
    "aiomysql": ("aiomysql", "AiomysqlDriver"),
    "pymysql": ("pymysql", "PyMySQLDriver"),
    "asyncmy": ("asyncmy", "AsyncmyDriver"),
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
    if name not in _HOMES:
        known = sorted({*_HOMES, *_drivers})
        raise ConfigError(
            f"There is no driver {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}; register_driver adds "
            "others."
        )
    if not is_installed(CLIENT_LIBRARIES[name]):
        installed = installed_drivers()
        advice = (
            f"Installed: {', '.join(installed)}; to use it, set driver={installed[0]!r}, or "
            f"?driver={installed[0]} in the DSN."
            if installed
            else "No other driver's is installed either."
        )
        raise DriverMissing(f"The library of driver {name!r} is not installed. Run {install_command(name)}. {advice}")
    module, made = _HOMES[name]
    driver = getattr(import_module(f".libraries.{module}", __package__), made)()
    return _drivers.setdefault(name, driver)
