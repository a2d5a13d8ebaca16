"""The configuration: `MySQLConfig`, from keywords, a DSN or the environment."""

from __future__ import annotations

import logging
import os
import re
import textwrap
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from pydantic import BaseModel, SecretStr, ValidationError

from .dsn import parse_dsn, split_hosts
from .errors import ConfigError
from .extras import DEFAULT_DRIVER, default_driver
from .keywords import ConnectionKeywords, Keywords, StoreKeywords
from .options import NOT_EMBEDDED, ConnectionOptions, Endpoint, PasswordFunction, StoreOptions, refuse_unused
from .wording import did_you_mean

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
