"""Every option, checked once: `MySQLConfig`, made of the options of a connection and those of a store."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from .errors import ConfigError
from .keywords import ConnectionKeywords, Keywords, StoreKeywords

__all__ = [
    "ConnectionKeywords",
    "ConnectionOptions",
    "Endpoint",
    "Keywords",
    "MySQLConfig",
    "StoreKeywords",
    "StoreOptions",
]

Reads = Literal["primary", "secondary", "inspect"]
SSLMode = Literal["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"]

#: Identifiers: letters, digits, ``_`` and ``$``; a database may also hold ``-``. MySQL's limit is 64 characters.
_DATABASE = re.compile(r"[A-Za-z0-9_$-]{1,64}")
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}|")
_ENVIRONMENT_PREFIX = "LOCUS_MYSQL_"

#: Options that locate the server; one of them given by keyword replaces all of them in the environment.
_ADDRESS = frozenset({"host", "port", "hosts", "unix_socket", "embedded"})

#: Drivers by the names that SQLAlchemy has for them: https://docs.sqlalchemy.org/en/20/dialects/mysql.html
_SQLALCHEMY_DRIVERS = {
    "mysqlconnector": "mysql-connector",
    "pymysql": "pymysql",
    "aiomysql": "aiomysql",
    "asyncmy": "asyncmy",
}

#: Options that DSNs of SQLAlchemy often have, and the values accepted here.
_SQLALCHEMY_OPTIONS = {"charset": "utf8mb4", "collation": "utf8mb4_[a-z0-9_]+"}

_NO_DATABASE = "The DSN names no database. Write mysql://user:password@host/database, or give database=."

#: Options that an embedded database does not take.
_NOT_EMBEDDED = frozenset({"host", "port", "hosts", "unix_socket", "user", "password", "reads"})

#: The scheme of a DSN with the folder of an embedded database, and what it uses by default: the database's name, and
#: the driver whose library pylibseekdb brings.
_EMBEDDED = "mysql+embedded"
_EMBEDDED_DATABASE = "locus"
_EMBEDDED_DRIVER = "pymysql"

Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of one server: a host and port, or the path of a Unix socket."""

    host: str
    port: int
    unix_socket: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.unix_socket or f"{host}:{self.port}"


class PasswordFunction:
    """A function that returns the password of each new connection.

    Args:
        call: The function. It is not shown, as its ``repr`` may have secrets.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call

    def __repr__(self) -> str:
        return "PasswordFunction(…)"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        return core_schema.is_instance_schema(cls, serialization=core_schema.to_string_ser_schema())


def is_sendable(password: str) -> bool:
    """Check whether a password can be sent to a server."""
    return "\0" not in password and not any("\ud800" <= character <= "\udfff" for character in password)


def _option(default: Any, description: str, *, advanced: bool = False) -> Any:
    """A field of the configuration, described in Markdown. ``python -m ci.options`` writes documents and types from it.

    Args:
        default: Its default.
        description: What it means.
        advanced: Whether few users set it.
    """
    return Field(default, description=description, json_schema_extra={"advanced": advanced})


class ConnectionOptions(BaseModel):
    """Options of the connection to MySQL, shared by all stores of a `Database`. Each field has a description."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=False)

    driver: Annotated[str, Field(min_length=1)] = _option(
        "mysql-connector",
        "`mysql-connector`, `aiomysql`, `pymysql`, `asyncmy`, or a name given to `register_driver`.",
    )
    host: Annotated[str, Field(min_length=1, max_length=255)] = _option(
        "localhost", "Host name or address of the server."
    )
    port: Annotated[int, Field(ge=1, le=65535)] = _option(3306, "TCP port.")
    unix_socket: Annotated[str, Field(min_length=1)] | None = _option(
        None, "Path of the server's socket, instead of host and port."
    )
    embedded: Path | None = _option(
        None,
        "Folder of a database that this process runs by itself, instead of a server's address "
        "([embedded](embedded.md)). In a DSN: `mysql+embedded:///folder`.",
    )
    hosts: tuple[str, ...] = _option(
        (),
        "Several servers, `host` or `host:port`, instead of `host` ([failover](failover.md)). Calls go to the primary, "
        "which is found by asking them in this order: a server that is read-only, that is not a working member of its "
        "group, or that lacks the database is passed over. In a DSN: joined by commas.",
    )
    reads: Reads = _option(
        "primary",
        "Where calls that only read go, if there are several `hosts` "
        "([reading from secondaries](failover.md#reading-from-secondaries)). `primary`: all of them to the primary. "
        "`secondary`: searches, lists and counts of many threads to a secondary that has all that this process has "
        "seen; whatever a save may continue from, to the primary. `inspect`: all reads to such a secondary, and writes "
        "are refused. The primary answers where no secondary can.",
        advanced=True,
    )
    user: Annotated[str, Field(min_length=1)] = _option("root", "Account name.")
    password: SecretStr | PasswordFunction = _option(
        SecretStr(""),
        "Its password. It is never shown. Or a function without arguments, also an `async` one, that returns it: it is "
        "called for each new connection ([short-lived passwords](security.md#short-lived-passwords)).",
    )
    database: str = _option(
        "locus",
        "The database (schema) that holds the tables. It must exist. There is no default with a DSN: name it in the "
        "DSN or here.",
    )
    ssl_mode: SSLMode = _option(
        "PREFERRED",
        "As MySQL's own client: `DISABLED`; `PREFERRED`, TLS if the server offers it; `REQUIRED`; `VERIFY_CA`, where "
        "`ssl_ca` must have signed the server's certificate; `VERIFY_IDENTITY`, where the certificate must also name "
        "the host.",
    )
    ssl_ca: Path | None = _option(None, "File of trusted certificates (PEM). Default: those of the system.")
    ssl_cert: Path | None = _option(None, "File of the client's certificate (PEM).", advanced=True)
    ssl_key: Path | None = _option(None, "File of the client's key (PEM).", advanced=True)
    cleartext_password: bool = _option(
        False,
        "Whether to send the password in clear text (`mysql_clear_password`, as LDAP and PAM need it) over TLS that "
        "does not verify the server (`PREFERRED`, `REQUIRED`). It is sent anyway where the certificate is verified, "
        "and on a Unix socket; never without TLS.",
        advanced=True,
    )
    connect_timeout_s: Seconds = _option(
        10.0,
        "Limit for making one connection, in seconds: TCP, TLS, login and the session's settings. Time in which other "
        "code blocks the event loop does not count.",
        advanced=True,
    )
    read_timeout_s: Seconds = _option(
        60.0, "Limit for the whole answer to one packet, in seconds, however slowly it arrives.", advanced=True
    )
    write_timeout_s: Seconds = _option(
        60.0,
        "Limit for sending one packet, in seconds. A call that sends several packets takes at most the sum of both "
        "limits. So does a packet over 64 KB with asyncio and TLS, which do not report when it was sent.",
        advanced=True,
    )
    pool_size: Annotated[int, Field(ge=1, le=10_000)] = _option(
        10,
        "Most connections open at once, for each process and each event loop; the same number again to secondaries, "
        "if `reads` asks for them.",
    )
    pool_timeout_s: Seconds = _option(
        30.0, "Longest wait for a free connection, in seconds; then `PoolTimeout`.", advanced=True
    )
    pool_idle_s: Seconds = _option(300.0, "A connection unused for longer is closed, in seconds.", advanced=True)
    pool_max_age_s: Seconds = _option(
        3600.0, "A connection older than this is replaced before its next use, in seconds.", advanced=True
    )
    retry_deadline_s: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = _option(
        30.0,
        "How long an operation is repeated after a lost connection, a deadlock or a lock wait, in seconds from its "
        "start. At most 600, because the tables remember for a quarter of an hour which writes were carried out. `0` "
        "never repeats.",
        advanced=True,
    )
    select_timeout_s: Seconds | None = _option(
        None,
        "The server ends a SELECT that runs longer, in seconds (`max_execution_time`), also for a killed process. It "
        "does not apply to writes and locking reads. `None`: the server's own setting. `serve` takes 30.",
        advanced=True,
    )
    slow_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = _option(
        None,
        "A call that takes longer, in milliseconds, is logged as a warning by logger `locus_mysql.calls` "
        "([observability](observability.md)). `None` logs none.",
    )
    pipeline: bool = _option(
        True,
        "Send a transaction as one packet. Switch it off for proxies that refuse multi-statement packets: then "
        "statements are sent one by one.",
        advanced=True,
    )

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The servers to try, in order. For an embedded database, its folder stands for the server's socket."""
        if self.embedded is not None:
            return (Endpoint(self.host, self.port, str(self.embedded)),)
        if self.unix_socket:
            return (Endpoint(self.host, self.port, self.unix_socket),)
        return tuple(_endpoint(host, self.port) for host in self.hosts or (self.host,))

    @property
    def password_text(self) -> str:
        """The password as text. The engine replaces a function by what it returns before it calls a driver.

        Raises:
            ConfigError: It is a function.
        """
        if isinstance(self.password, PasswordFunction):
            raise ConfigError("The password must be text here, not a function.")
        return self.password.get_secret_value()

    @field_validator("database")
    @classmethod
    def _check_database(cls, value: str) -> str:
        if not _DATABASE.fullmatch(value):
            raise ValueError("must be 1 to 64 letters, digits, '_', '$' or '-'")
        return value

    @field_validator("user")
    @classmethod
    def _check_user(cls, value: str) -> str:
        return _printable(value)

    @field_validator("password", mode="wrap")
    @classmethod
    def _check_password(cls, value: Any, check: Callable[[Any], SecretStr]) -> SecretStr | PasswordFunction:
        if isinstance(value, PasswordFunction):
            return value
        if callable(value):
            return PasswordFunction(value)
        try:
            password = check(value)
        except ValidationError:
            raise ValueError("must be text, or a function that returns it") from None
        if not is_sendable(password.get_secret_value()):
            raise ValueError("must hold neither NUL nor lone surrogates")
        return password

    @field_validator("host")
    @classmethod
    def _check_host(cls, value: str) -> str:
        _endpoint(value, 1)
        return value

    @field_validator("embedded", mode="before")
    @classmethod
    def _check_embedded_is_given(cls, value: Any) -> Any:
        if value == "":
            raise ValueError("names no folder")
        return value

    @field_validator("embedded")
    @classmethod
    def _check_embedded(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        if "\0" in str(value):
            raise ValueError("must not hold NUL")
        return value.absolute()  # now, as connections are opened later, when the current folder may be another

    @field_validator("hosts")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            _endpoint(host, 1)
        return value

    @model_validator(mode="after")
    def _check_contradictions(self) -> Self:
        given = self.model_fields_set
        if self.embedded is not None:
            for name in sorted(given & _NOT_EMBEDDED):
                raise ValueError(f"embedded and {name} exclude each other: an embedded database has no address or user")
        if self.unix_socket and (self.hosts or "host" in given):
            raise ValueError("unix_socket and host (or hosts) exclude each other; give one of them")
        if self.hosts and "host" in given:
            raise ValueError("host and hosts exclude each other; give one of them")
        if {"host", "port"} <= given and _endpoint(self.host, self.port).port != self.port:
            raise ValueError("host and port name different ports; give the port once")
        if bool(self.ssl_cert) != bool(self.ssl_key):
            raise ValueError("ssl_cert and ssl_key belong together; give both")
        if self.ssl_mode == "DISABLED" and (self.ssl_ca or self.ssl_cert):
            raise ValueError("ssl_mode DISABLED contradicts ssl_ca, ssl_cert and ssl_key; drop one side")
        for name in ("ssl_ca", "ssl_cert", "ssl_key"):
            path = getattr(self, name)
            if path is not None and not path.is_file():
                raise ValueError(f"{name}: there is no file {path}")
        return self


class StoreOptions(BaseModel):
    """Options of one store: its tenant, tables, limits and retention. Each field has a description."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=False)

    tenant: Annotated[str, Field(min_length=1, max_length=128)] = _option(
        "default",
        "Whose checkpoints these are, 1 to 128 characters. No operation sees another tenant's.",
    )
    table_prefix: str = _option(
        "locus_", "Put before the names of the tables; at most 40 letters, digits and underscores."
    )
    ttl_s: Seconds | None = _option(None, "A thread expires this many seconds after its last save; `None` keeps it.")
    keep_checkpoints: Annotated[int, Field(ge=1)] | None = _option(
        None, "Newest checkpoints kept for each thread; `None` keeps all."
    )
    search: bool = _option(True, "Keep a full-text index.")
    search_parser: Literal["default", "ngram"] = _option(
        "default",
        "`default` splits words at spaces; `ngram` is for Chinese, Japanese and Korean. Fixed when the tables are "
        "created.",
        advanced=True,
    )
    compression: Literal["zlib", "none"] = _option(
        "zlib",
        "`zlib` compresses stored rows where that saves space; `none` never does. Either setting reads both.",
        advanced=True,
    )
    cache_bytes: Annotated[int, Field(ge=0)] = _option(
        33_554_432,
        "Memory for recently used states, in bytes. The next save of such a thread encodes and hashes only what is "
        "new, and the next load transfers only what is new. `0` keeps none.",
        advanced=True,
    )
    ddl_mode: Literal["create", "validate", "off"] = _option(
        "create",
        "`create` makes missing tables on first use; `validate` only checks them; `off` does neither.",
    )

    @property
    def ttl_seconds(self) -> float | None:
        """``ttl_s``, under the name by which Locus' ``StorageBackendAdapter`` recognises a backend with expiry."""
        return self.ttl_s

    @field_validator("table_prefix")
    @classmethod
    def _check_prefix(cls, value: str) -> str:
        if not _PREFIX.fullmatch(value):
            raise ValueError("must be at most 40 letters, digits and '_', not starting with a digit")
        return value

    @field_validator("tenant")
    @classmethod
    def _check_tenant(cls, value: str) -> str:
        return _printable(value)


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

    def __init__(self, *, dsn: str | SecretStr | None = None, **options: Any) -> None:
        from_dsn = {} if dsn is None else _parse_dsn(dsn)
        if dsn is not None and self._whole and "database" not in {*from_dsn, *options}:
            raise ConfigError(_NO_DATABASE)
        given = {**from_dsn, **options}
        if self._whole and given.get("embedded") is not None and "driver" not in given:
            options["driver"] = _EMBEDDED_DRIVER
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
            raise ConfigError(
                f"There is no option {name!r}. Those of a store: {', '.join(sorted(StoreOptions.model_fields))}."
            )
        return type(self)(**{**_given(self), **options})

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None, **options: Any) -> MySQLConfig:
        """Return the configuration in ``LOCUS_MYSQL_DSN`` and ``LOCUS_MYSQL_<OPTION>``; keywords win over it.

        Other variables are left alone, as some with this prefix are not options.

        Args:
            environment: Read instead of the process's environment.
            options: Options that do not come from the environment.
        """
        environment = os.environ if environment is None else environment
        known = {"dsn", *cls.model_fields}
        found: dict[str, Any] = {}
        for name, value in environment.items():
            option = name.removeprefix(_ENVIRONMENT_PREFIX).lower()
            if value and name.startswith(_ENVIRONMENT_PREFIX) and option in known:
                found[option] = _split_hosts(value) if option == "hosts" else value
        if not options:
            return cls(**found)
        from_environment = _given(_Part(**found))
        from_keywords = _given(_Part(**options))
        if from_keywords.keys() & _ADDRESS:
            replaced = _ADDRESS | _NOT_EMBEDDED if from_keywords.get("embedded") else _ADDRESS
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


def _printable(value: str) -> str:
    if "\0" in value or not value.isprintable():
        raise ValueError("must hold printable characters only")
    return value


def _parse_dsn(dsn: str | SecretStr) -> dict[str, Any]:
    """Return the options of a DSN. No message repeats the DSN: it may hold a password."""
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
            return _embedded_options(url)
        return {**driver, **_dsn_options(url, port, given={*driver})}
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
        known = ", ".join(f"mysql+{known}" for known in _SQLALCHEMY_DRIVERS)
        what = "mysqlclient (MySQLdb)" if name == "mysqldb" else "the driver named after mysql+ in the DSN"
        raise ConfigError(f"There is no support for {what}. Write one of {known}, or mysql:// and driver=.")
    return {"driver": _SQLALCHEMY_DRIVERS[name]}


def _embedded_options(url: SplitResult) -> dict[str, Any]:
    """Return the options of ``mysql+embedded:///folder``, with four slashes for an absolute path, as SQLite's DSNs."""
    folder = _decode(url.path[1:])
    if url.netloc or not folder:
        raise ConfigError(
            "The DSN names no folder. Write mysql+embedded:///folder, or mysql+embedded:////absolute/path/to/folder."
        )
    options = _dsn_options(url._replace(path=""), None, given={"embedded"})
    return {"database": _EMBEDDED_DATABASE, **options, "embedded": Path(folder)}


def _dsn_options(url: SplitResult, port: int | None, given: Set[str]) -> dict[str, Any]:
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
        if name == "password" or name not in MySQLConfig.model_fields:
            known = ", ".join(sorted(set(MySQLConfig.model_fields) - {"password"}))
            raise ConfigError(f"The DSN has an unknown option {name!r}. Known: {known}.")
        if name in options or name in given:
            raise ConfigError(f"The DSN gives {name} twice; give it once.")
        options[name] = _split_hosts(_decode(value)) if name == "hosts" else _decode(value)
    return options


def _decode(text: str) -> str:
    return unquote(text, errors="strict")


def _given(config: MySQLConfig) -> dict[str, Any]:
    """The options that were not left at their defaults."""
    return {name: getattr(config, name) for name in config.model_fields_set}


def _split_hosts(text: str) -> tuple[str, ...]:
    return tuple(host.strip() for host in text.split(",") if host.strip())


def _endpoint(host: str, default_port: int) -> Endpoint:
    """``host``, ``host:port``, ``[v6]:port`` or a bare IPv6 address."""
    match = re.fullmatch(
        r"\[(?P<v6>[0-9A-Fa-f:.]+)\](?::(?P<v6port>[0-9]{1,5}))?|"
        r"(?P<host>[^:\[\]/@,\s\0]+)(?::(?P<port>[0-9]{1,5}))?",
        host,
    )
    if match is None:
        if re.fullmatch(r"[0-9A-Fa-f:.]+", host):
            return Endpoint(host, default_port)
        raise ValueError("must be a host name or address, or host:port")  # not repeated: it may be a whole DSN
    port = int(match["v6port"] or match["port"] or default_port)
    if not 1 <= port <= 65535:
        raise ValueError("has a port outside 1 to 65535")
    return Endpoint(match["v6"] or match["host"], port)


def _explain(error: ValidationError) -> str:
    """Return which options are wrong and why, without their values."""
    lines = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False):
        option = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            known = ", ".join(sorted(MySQLConfig.model_fields))
            message = f"there is no such option. Known: {known}"
        lines.append(f"{option}: {message}" if option else message)
    return "; ".join(lines) + "."
