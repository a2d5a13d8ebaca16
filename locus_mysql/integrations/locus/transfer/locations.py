"""The sides of a copy by their names: ``file:PATH``, ``redis://…``, ``mysql:DSN`` and others."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.registry import get_checkpointer, list_checkpointers

from ....config import MySQLConfig, hide, secrets_in
from ....errors import SetupError, UsageError
from ....runtime.arguments import from_environment
from ....runtime.database import Database
from ....transfer.engine import Notify
from ..checkpointer import MySQLCheckpointer, SyncMySQLCheckpointer
from ..operations import LocusOperations
from .built_in_table import BuiltInSource
from .checkpointers import CheckpointerSource
from .sources import CopySource
from .threads import AgentTables

#: The source or the target of a copy: its name, or a checkpointer.
CheckpointerOrName: TypeAlias = "str | BaseCheckpointer | SyncMySQLCheckpointer"

#: Schemes of URLs, the checkpointers that take them, and the option that is the URL.
_URLS = {
    "redis": ("redis", "url"),
    "rediss": ("redis", "url"),
    "unix": ("redis", "url"),
    "postgresql": ("postgresql", "dsn"),
    "postgres": ("postgresql", "dsn"),
    "http": ("http", "base_url"),
    "https": ("http", "base_url"),
}

_URL = re.compile(r"(?P<scheme>[a-z]+)://", re.IGNORECASE)

#: The beginning of the scheme of a DSN with a driver, such as ``mysql+pymysql``, or of an embedded database.
_MYSQL_WITH = "mysql+"

_FACTORY = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*")


class Location:
    """A side by its name, and the secrets in it, which must not be shown.

    Args:
        name: Its name, or ``env:NAME`` for the environment variable that holds it.
        options: Options of the checkpointer. A text ``env:NAME`` stands for an environment variable.
        tenant: The tenant of this package's tables, if the name has none.

    Raises:
        UsageError: An environment variable is not set.
    """

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, tenant: str | None = None) -> None:
        self.name = str(from_environment(name))
        self.options = {key: from_environment(value) for key, value in (options or {}).items()}
        self.tenant = tenant
        hidden = [str(self.options[key]) for key in self.options if _is_secret(key)]
        self.secrets = {one for one in [*hidden, *secrets_in(self.name)] if one}

    @property
    def kind(self) -> str:
        """The text before the first colon; a DSN's also has a driver, or a mark for an embedded database."""
        scheme = self.name.partition(":")[0]
        return "mysql" if scheme.startswith(_MYSQL_WITH) else scheme

    def checkpointer(self) -> BaseCheckpointer | SyncMySQLCheckpointer:
        """Open the checkpointer.

        Raises:
            UsageError: The name is not a checkpointer's.
            SetupError: A library that it needs is not installed.
        """
        try:
            made = self._made()
        except (UsageError, SetupError):
            raise
        except ImportError as error:
            raise SetupError(f"{self.shown}: {what_to_install(error)}") from None
        except (TypeError, ValueError) as error:
            raise UsageError(f"{self.shown} cannot be opened: {hide(str(error), self.secrets)}") from None
        if not isinstance(made, BaseCheckpointer | SyncMySQLCheckpointer):
            if all(hasattr(made, name) for name in ("save", "load", "exists")):
                return StorageBackendAdapter(made)
            raise UsageError(f"{self.shown} gives no Locus checkpointer, but {type(made).__name__}.")
        return made

    def config(self) -> MySQLConfig:
        """Return the configuration of a MySQL server.

        Raises:
            ConfigError: The name is not a MySQL server's, or an option is wrong.
        """
        scheme, _, rest = self.name.partition(":")
        if rest.startswith("//"):
            rest = f"{scheme if scheme.startswith(_MYSQL_WITH) else 'mysql'}:{rest}"
        options = dict(self.options)
        if rest:
            options["dsn"] = rest
        if self.tenant is not None and "tenant=" not in urlsplit(rest).query:
            options.setdefault("tenant", self.tenant)
        return MySQLConfig.from_env(**options)

    def built_in(self) -> tuple[MySQLConfig, str]:
        """Return the server and the table of Locus' built-in MySQL backend.

        Raises:
            ConfigError: The name is not a MySQL server's, or an option is wrong.
        """
        options = dict(self.options)
        table = str(options.pop("table", "checkpoints"))
        return Location(self.name, options, self.tenant).config(), table

    @property
    def shown(self) -> str:
        """The name without passwords."""
        return hide(self.name, self.secrets)

    def _made(self) -> Any:
        found = _URL.match(self.name)
        if found is not None and found["scheme"].lower() in _URLS:
            provider, option = _URLS[found["scheme"].lower()]
            return get_checkpointer(provider, **{option: self.name, **self.options} | self._login(provider, option))
        kind, _, rest = self.name.partition(":")
        if kind == "http" and rest:
            return Location(rest, self.options).checkpointer()
        if kind in list_checkpointers():
            return get_checkpointer(self.name, **self.options)
        if _FACTORY.fullmatch(self.name):
            return self._by_factory(kind, rest)
        raise UsageError(
            f"{self.shown!r} names no checkpointer. Give one of {_names()}, followed by a colon and its address or "
            "argument, or a function as package.module:function."
        )

    def _login(self, provider: str, option: str) -> dict[str, Any]:
        """Return user and password of an HTTP address, which the client takes separately."""
        parts = urlsplit(self.name)
        if provider != "http" or parts.username is None:
            return {}
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return {option: bare, "auth": (unquote(parts.username), unquote(parts.password or ""))}

    def _by_factory(self, module: str, function: str) -> Any:
        try:
            factory = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise UsageError(
                f"{self.name!r} cannot be imported: {error}. It was taken for package.module:function, as it begins "
                f"with none of {_names()}."
            ) from None
        return factory(**self.options)


def open_source(side: CheckpointerOrName | Location, notify: Notify) -> CopySource | AgentTables:
    """Open the source of a copy.

    Args:
        side: A checkpointer, or its name.
        notify: Receives messages about threads that share a location in it.

    Raises:
        UsageError: It cannot be a source.
        SetupError: A library that it needs is not installed.
    """
    location = Location(side) if isinstance(side, str) else side
    if isinstance(location, Location) and location.kind == "builtin-mysql":
        return BuiltInSource(*location.built_in(), notify)
    opened, owned = _opened(location)
    return opened if isinstance(opened, AgentTables) else CheckpointerSource(opened, owned=owned)


def open_target(side: CheckpointerOrName | Location) -> AgentTables:
    """Open the target of a copy.

    Args:
        side: A `MySQLCheckpointer`, or the name of this package's tables.

    Raises:
        UsageError: It is something else.
    """
    location = Location(side) if isinstance(side, str) else side
    if not isinstance(location, Location) or location.kind == "mysql":
        opened, _ = _opened(location)
        if isinstance(opened, AgentTables):
            return opened
    name = location.shown if isinstance(location, Location) else type(location).__name__
    raise UsageError(
        f"{name} cannot be the target of a copy: threads are copied into this package's tables. Give "
        "mysql://user@host/database or a MySQLCheckpointer. To move out, use `export`, or save what "
        "`MySQLCheckpointer.load` returns into the other checkpointer."
    )


def what_to_install(error: ImportError) -> str:
    """Return Locus' message about a missing library, with the name under which Locus is installed from an index."""
    return re.sub(r"pip install locus\[(\w+)\]", r"pip install 'locus-sdk[\1]'", str(error))


def _opened(side: CheckpointerOrName | Location) -> tuple[AgentTables | BaseCheckpointer, bool]:
    """Return this package's tables, or the checkpointer, and whether the copy must close them."""
    owned = isinstance(side, Location)
    if isinstance(side, Location) and side.kind == "mysql":
        config = side.config()
        return AgentTables(Database(config), LocusOperations(config, None, None, None), owned=True), True
    checkpointer = side.checkpointer() if isinstance(side, Location) else cast("BaseCheckpointer", side)
    if isinstance(checkpointer, MySQLCheckpointer | SyncMySQLCheckpointer):
        return AgentTables(checkpointer.database, checkpointer._operations, owned=owned), owned
    return checkpointer, owned


def _is_secret(option: str) -> bool:
    """Return whether the value of an option must not be shown."""
    return re.search("password|secret|token|key|auth|header|dsn|url", option, re.IGNORECASE) is not None


def _names() -> str:
    """Return the kinds of names that can be opened."""
    return ", ".join(sorted({*list_checkpointers(), "builtin-mysql"}))
