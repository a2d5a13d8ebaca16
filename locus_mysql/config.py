"""The configuration: `MySQLConfig`, from keywords, a DSN (`parse_dsn`) or the environment."""

from __future__ import annotations

import logging
import os
import re
import textwrap
from collections.abc import Collection, Mapping, Set
from pathlib import Path
from typing import Any, ClassVar, Unpack
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import BaseModel, SecretStr, ValidationError

from .errors import ConfigError
from .extras import DEFAULT_DRIVER, default_driver
from .keywords import ConnectionKeywords, Keywords, StoreKeywords
from .options import NOT_EMBEDDED, ConnectionOptions, Endpoint, PasswordFunction, StoreOptions, refuse_unused
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


__all__ = [
    "ENVIRONMENT",
    "ConnectionKeywords",
    "ConnectionOptions",
    "Endpoint",
    "Environment",
    "Keywords",
    "MySQLConfig",
    "PasswordFunction",
    "StoreKeywords",
    "StoreOptions",
    "refuse_unused",
]

_ENVIRONMENT_PREFIX = "LOCUS_MYSQL_"

#: Variables with the prefix that are no options: of ``serve``, ``copy`` and the tests.
_OTHER_VARIABLES = frozenset({"tokens", "cookie_key", "copy_from", "copy_to", "test_dsn", "test_engine"})

#: A variable of the environment that resembles an option is ignored: WARNING.
_LOGGER = logging.getLogger("locus_mysql.options")

#: Options that locate the server; one of them given by keyword replaces all of them in the environment.
_ADDRESS = frozenset({"host", "port", "hosts", "unix_socket", "embedded"})

#: The options that name a server. A store that is given none of them reads the environment.
NAMES_SERVER = _ADDRESS | {"dsn"}

_DSN_IS_NONE = (
    "The DSN is None. If it should come from a variable of the environment, that one is not set. Give "
    "'mysql://user:password@host/database'; or leave it out, and LOCUS_MYSQL_DSN is read."
)

_NO_DATABASE = "The DSN names no database. Write mysql://user:password@host/database, or give database=."

#: The default driver of an embedded database: pylibseekdb depends on its library.
_EMBEDDED_DRIVER = "pymysql"


class Environment:
    """The type of `ENVIRONMENT`."""

    def __repr__(self) -> str:
        return "ENVIRONMENT"


#: In place of a DSN: the options are those of `MySQLConfig.from_env`, unless a keyword names the server.
ENVIRONMENT = Environment()


def check_dsn(dsn: object) -> None:
    """Raise if a DSN is None, as ``os.environ.get`` returns it.

    Raises:
        ConfigError: It is.
    """
    if dsn is None:
        raise ConfigError(_DSN_IS_NONE)


class MySQLConfig(StoreOptions, ConnectionOptions):
    """The configuration of a connection and a store. Frozen; unknown options are refused.

    Args:
        dsn: ``mysql://user:password@host:port/database?option=value``, percent-encoded. Where it leaves out the
            database, ``database`` must be given. Its options are those below, except for the password. An option given
            both in the DSN and by keyword must have the same value in both. SQLAlchemy's form, ``mysql+pymysql://``,
            names the driver too; its ``charset=utf8mb4`` and ``collation=`` are accepted, and have no effect.
        options: Those of `ConnectionOptions` and `StoreOptions`, listed at the end.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another.
    """

    _whole: ClassVar[bool] = True

    def __init__(self, *, dsn: str | SecretStr | Environment = ENVIRONMENT, **options: Any) -> None:
        check_dsn(dsn)
        from_dsn = {} if isinstance(dsn, Environment) else parse_dsn(dsn, type(self).model_fields)
        if not isinstance(dsn, Environment) and self._whole and "database" not in {*from_dsn, *options}:
            raise ConfigError(_NO_DATABASE)
        given = {**from_dsn, **options}
        if self._whole and "driver" not in given:
            driver = default_driver() if given.get("embedded") is None else _EMBEDDED_DRIVER
            if driver != DEFAULT_DRIVER:
                options["driver"] = driver
        try:
            super().__init__(**{**from_dsn, **options})
        except ValidationError as error:
            raise ConfigError(_explain(error)) from None
        if twice := from_dsn.keys() & options.keys():
            by_dsn = type(self)(**{**options, **from_dsn})
            for name in sorted(twice):
                if getattr(self, name) != getattr(by_dsn, name):
                    raise ConfigError(
                        f"{name} is given in the DSN and as a keyword with different values; give it once."
                    )

    def for_store(self, **options: Unpack[StoreKeywords]) -> MySQLConfig:
        """Return a copy with other options of a store.

        Raises:
            ConfigError: An option is wrong, or belongs to the connection.
        """
        for name in sorted({*options} - {*StoreOptions.model_fields}):
            if name == "dsn" or name in ConnectionOptions.model_fields:
                raise ConfigError(f"{name} belongs to the connection, which others share; give it to the Database.")
            known = sorted(StoreOptions.model_fields)
            raise ConfigError(
                f"There is no option {name!r}.{did_you_mean(name, known)} Those of a store: {', '.join(known)}."
            )
        return type(self)(**{**_given(self), **options})

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None, **options: Any) -> MySQLConfig:
        """Return the configuration in ``LOCUS_MYSQL_DSN`` and ``LOCUS_MYSQL_<OPTION>``; keywords win over it.

        With ``dsn`` as a keyword, nothing is taken from ``LOCUS_MYSQL_DSN``.

        Other variables are left alone, as some with this prefix are not options. One that resembles an option is
        logged, without its value.

        Args:
            environment: Read instead of the process's environment.
            options: Options that do not come from the environment.
        """
        environment = os.environ if environment is None else environment
        known = {"dsn", *cls.model_fields}
        found: dict[str, Any] = {}
        for name, value in environment.items():
            option = name.removeprefix(_ENVIRONMENT_PREFIX).lower()
            if not value or not name.startswith(_ENVIRONMENT_PREFIX):
                continue
            if option in known:
                found[option] = split_hosts(value) if option == "hosts" else value
            elif option not in _OTHER_VARIABLES and (advice := did_you_mean(option, known)):
                _LOGGER.warning("The variable %s is ignored: it is no option.%s", name[:100], advice)
        if not options:
            return cls(**found)
        if "dsn" in options:  # its password and tenant are those of another server
            found.pop("dsn", None)
        from_environment = _given(_Part(**found))
        from_keywords = _given(_Part(**options))
        if from_keywords.keys() & _ADDRESS:
            replaced = _ADDRESS | NOT_EMBEDDED if from_keywords.get("embedded") else _ADDRESS
            from_environment = {name: value for name, value in from_environment.items() if name not in replaced}
        merged = {**from_environment, **from_keywords}
        if "dsn" in {*found, *options} and "database" not in merged:
            raise ConfigError(_NO_DATABASE)
        return cls(**merged)


def _described(model: type[BaseModel]) -> str:
    """Return the options of a model as a list for a docstring."""
    lines = []
    for name, field in model.model_fields.items():
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", field.description or "").replace("`", "``")
        lines.append(textwrap.fill(f"{name}: {text}", 112, initial_indent="        ", subsequent_indent=" " * 12))
    return "\n".join(lines)


MySQLConfig.__doc__ = f"{MySQLConfig.__doc__}\n    Options:\n{_described(MySQLConfig)}\n"


class _Part(MySQLConfig):
    """The options from one of several places: the database may be named by another."""

    _whole = False


def _given(config: MySQLConfig) -> dict[str, Any]:
    """The options that were not left at their defaults."""
    return {name: getattr(config, name) for name in config.model_fields_set}


def _explain(error: ValidationError) -> str:
    """Return which options are wrong and why, without their values."""
    lines = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False):
        option = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Encryption: ").rstrip(".")
        if problem["type"] == "extra_forbidden":
            known = sorted(MySQLConfig.model_fields)
            message = f"there is no such option.{did_you_mean(option, known)} Known: {', '.join(known)}"
        lines.append(f"{option}: {message}" if option else message)
    return "; ".join(lines) + "."
