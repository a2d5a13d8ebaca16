"""DSNs: `parse_dsn` returns the options in one, and `hide` the passwords in texts that may hold one."""

from __future__ import annotations

import re
from collections.abc import Collection, Set
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import SecretStr

from .errors import ConfigError
from .wording import did_you_mean

#: Drivers by the names that SQLAlchemy has for them: https://docs.sqlalchemy.org/en/20/dialects/mysql.html
_SQLALCHEMY_DRIVERS = {
    "mysqlconnector": "mysql-connector",
    "pymysql": "pymysql",
    "aiomysql": "aiomysql",
    "asyncmy": "asyncmy",
}

#: Options that hold secrets, and are no part of a DSN's query.
_NOT_IN_QUERY = frozenset({"password", "encryption"})

#: Options that DSNs of SQLAlchemy often have, and the values accepted here.
_SQLALCHEMY_OPTIONS = {"charset": "utf8mb4", "collation": "utf8mb4_[a-z0-9_]+"}

#: The scheme of a DSN with the folder of an embedded database, and the database's default name.
_EMBEDDED = "mysql+embedded"
_EMBEDDED_DATABASE = "locus"


def parse_dsn(dsn: str | SecretStr, known: Collection[str]) -> dict[str, Any]:
    """Return the options in a DSN. No message repeats the DSN: it may hold a password.

    Args:
        dsn: ``mysql://user:password@host:port/database?option=value``, or another of the accepted forms.
        known: The names of all options.

    Raises:
        ConfigError: The DSN is malformed, or has an unknown option.
    """
    text = dsn.get_secret_value() if isinstance(dsn, SecretStr) else dsn
    if not isinstance(text, str):
        raise ConfigError(f"The DSN must be text, not {type(text).__name__}.")
    text = text.strip()
    if not text.isprintable():
        raise ConfigError("The DSN holds a control character; percent-encode it.")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ConfigError(
            "The DSN cannot be read: its host or port is malformed. Write mysql://user:password@host:port/database and "
            "percent-encode special characters."
        ) from None
    driver = {} if url.scheme == _EMBEDDED else _dsn_driver(url.scheme)
    if url.fragment or "#" in text:
        raise ConfigError("The DSN holds a '#'; write it as %23.")
    if "@" in url.path + url.query:  # else part of a password with '/' or '?' would be taken for an option's name
        raise ConfigError("The DSN has an '@' after a '/' or '?'; percent-encode special characters.")
    try:
        if url.scheme == _EMBEDDED:
            return _embedded_options(url, known)
        return {**driver, **_dsn_options(url, port, known, given={*driver})}
    except UnicodeDecodeError:
        raise ConfigError("The DSN's percent-encoded bytes are not UTF-8.") from None


def _dsn_driver(scheme: str) -> dict[str, Any]:
    """Return the driver that a scheme names, as in SQLAlchemy: ``mysql+pymysql``. No message repeats the scheme."""
    if scheme in {"mysql", "mysql+connector"}:
        return {}
    dialect, plus, name = scheme.partition("+")
    if dialect != "mysql" or not plus:
        raise ConfigError("The DSN must begin with mysql://, or with mysql+DRIVER://, such as mysql+pymysql://.")
    if name not in _SQLALCHEMY_DRIVERS:
        names = ", ".join(f"mysql+{driver}" for driver in _SQLALCHEMY_DRIVERS)
        what = "mysqlclient (MySQLdb)" if name == "mysqldb" else "the driver named after mysql+ in the DSN"
        raise ConfigError(f"There is no support for {what}. Write one of {names}, or mysql:// and driver=.")
    return {"driver": _SQLALCHEMY_DRIVERS[name]}


def _embedded_options(url: SplitResult, known: Collection[str]) -> dict[str, Any]:
    """Return the options of ``mysql+embedded:///folder``, with four slashes for an absolute path, as SQLite's DSNs."""
    folder = _decode(url.path[1:])
    if url.netloc or not folder:
        raise ConfigError(
            "The DSN names no folder. Write mysql+embedded:///folder, or mysql+embedded:////absolute/path/to/folder."
        )
    options = _dsn_options(url._replace(path=""), None, known, given={"embedded"})
    return {"database": _EMBEDDED_DATABASE, **options, "embedded": Path(folder)}


def _dsn_options(url: SplitResult, port: int | None, known: Collection[str], *, given: Set[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if url.hostname:
        options["host"] = _decode(url.hostname)
    if port is not None:
        options["port"] = port
    if url.username:
        options["user"] = _decode(url.username)
    if url.password is not None:
        options["password"] = _decode(url.password)
    if url.path.strip("/"):
        options["database"] = _decode(url.path[1:])
    for pair in url.query.split("&") if url.query else ():
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ConfigError("The DSN's part after '?' must be option=value, joined by '&'.")
        name = _decode(name)
        if name in _SQLALCHEMY_OPTIONS:  # of which nothing is needed: sessions have utf8mb4, columns their collations
            if not re.fullmatch(_SQLALCHEMY_OPTIONS[name], _decode(value)):
                raise ConfigError(f"The DSN's {name} must be utf8mb4's, which all text here has; leave it out.")
            continue
        if name in _NOT_IN_QUERY:
            where = "before the host, mysql://user:password@host" if name == "password" else "as a keyword"
            raise ConfigError(f"The DSN cannot have {name} after '?'; give it {where}.")
        if name not in known:
            accepted = sorted({*known} - _NOT_IN_QUERY)
            hint = did_you_mean(name, accepted)
            raise ConfigError(f"The DSN has an unknown option {name!r}.{hint} Known: {', '.join(accepted)}.")
        if name in options or name in given:
            raise ConfigError(f"The DSN gives {name} twice; give it once.")
        options[name] = split_hosts(_decode(value)) if name == "hosts" else _decode(value)
    return options


def _decode(text: str) -> str:
    return unquote(text, errors="strict")


def split_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts in a list that is separated by commas."""
    return tuple(host.strip() for host in text.split(",") if host.strip())


def hide(text: str, secrets: set[str]) -> str:
    """Return a text without passwords."""
    text = re.sub(r"//\S*@", "//***@", text)  # a password that is not percent-encoded may hold slashes
    for secret in sorted((one for one in secrets if len(one) > 3), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def secrets_in(name: str) -> list[str]:
    """Return the passwords in a name, percent-encoded and decoded."""
    found = re.search(r"//[^/:]*:(.*)@", name)
    return [] if found is None else [found[1], unquote(found[1])]
