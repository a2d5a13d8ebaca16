"""The extras of this package: `install_command`, and which client libraries are installed."""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec

from .errors import SetupError

#: The module of each driver's client library.
CLIENT_LIBRARIES = {
    "mysql-connector": "mysql.connector",
    "aiomysql": "aiomysql",
    "pymysql": "pymysql",
    "asyncmy": "asyncmy",
}

#: The driver of a configuration that names none.
DEFAULT_DRIVER = "mysql-connector"


def installed_drivers() -> list[str]:
    """Return the drivers whose libraries are installed. Imports none of them."""
    return [driver for driver, module in CLIENT_LIBRARIES.items() if is_installed(module)]


def default_driver() -> str:
    """Return the driver of a configuration that names none: the only installed one if the default's is missing."""
    if is_installed(CLIENT_LIBRARIES[DEFAULT_DRIVER]):
        return DEFAULT_DRIVER
    drivers = installed_drivers()
    if "aiomysql" in drivers:  # which depends on PyMySQL, and uses it where calls block
        drivers.remove("pymysql")
    return drivers[0] if len(drivers) == 1 else DEFAULT_DRIVER


def is_installed(module: str) -> bool:
    """Return whether a module can be imported. Imports neither it nor its package."""
    package, _, below = module.partition(".")
    found = find_spec(package)
    if found is None or not below:
        return found is not None
    return PathFinder.find_spec(module, found.submodule_search_locations) is not None


def need(module: str, what: str, extra: str) -> None:
    """Import a module of a library.

    Args:
        module: Its name.
        what: The library, for the message.
        extra: The extra that installs it.

    Raises:
        SetupError: The library is not installed, or is too old to have the module.
    """
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise SetupError(f"{what} is not installed. Run {install_command(extra)}.") from error


def install_command(extra: str) -> str:
    """Return the command that installs an extra, wherever the package was installed from."""
    return f"pip install 'locus-mysql[{extra}]' (in a checkout of the repository: pip install '.[{extra}]')"
