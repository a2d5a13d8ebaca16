"""Drivers by name: those of this package and registered external ones."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import ConfigError, DriverMissing
from ..extras import install_command
from ..suggestions import did_you_mean
from .interface import Driver
from .libraries.aiomysql import AiomysqlDriver
from .libraries.asyncmy import AsyncmyDriver
from .libraries.mysql_connector import MySQLConnectorDriver
from .libraries.pymysql import PyMySQLDriver

#: The drivers of this package, and the module of each that must be installed.
_LIBRARIES = {
    driver.name: driver.library for driver in (MySQLConnectorDriver, AiomysqlDriver, PyMySQLDriver, AsyncmyDriver)
}
_drivers: dict[str, Driver] = {
    driver.name: driver for driver in (MySQLConnectorDriver(), AiomysqlDriver(), PyMySQLDriver(), AsyncmyDriver())
}


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
    if driver is None:
        raise ConfigError(
            f"There is no driver {name!r}.{did_you_mean(name, _drivers)} Known: {', '.join(sorted(_drivers))}; "
            "register_driver adds others."
        )
    library = getattr(driver, "library", None)
    if _LIBRARIES.get(name) == library and not _is_installed(library):
        installed = [other for other, module in _LIBRARIES.items() if _is_installed(module)]
        advice = (
            f"Installed: {', '.join(installed)}; to use it, set driver={installed[0]!r}, or "
            f"?driver={installed[0]} in the DSN."
            if installed
            else "No other driver's is installed either."
        )
        raise DriverMissing(f"The library of driver {name!r} is not installed. Run {install_command(name)}. {advice}")
    return driver


def _is_installed(module: str | None) -> bool:
    try:
        return module is None or find_spec(module) is not None
    except (ImportError, ValueError):  # the parent package is missing, or is not a package
        return False
