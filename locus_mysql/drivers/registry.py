"""Drivers by name: those of this package and registered external ones."""

from __future__ import annotations

from ..errors import ConfigError, DriverMissing
from ..extras import CLIENT_LIBRARIES, install_command, installed_drivers, is_installed
from ..suggestions import did_you_mean
from .interface import Driver
from .libraries.aiomysql import AiomysqlDriver
from .libraries.asyncmy import AsyncmyDriver
from .libraries.mysql_connector import MySQLConnectorDriver
from .libraries.pymysql import PyMySQLDriver

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
    if name in CLIENT_LIBRARIES and CLIENT_LIBRARIES[name] == library and not is_installed(CLIENT_LIBRARIES[name]):
        installed = installed_drivers()
        advice = (
            f"Installed: {', '.join(installed)}; to use it, set driver={installed[0]!r}, or "
            f"?driver={installed[0]} in the DSN."
            if installed
            else "No other driver's is installed either."
        )
        raise DriverMissing(f"The library of driver {name!r} is not installed. Run {install_command(name)}. {advice}")
    return driver
