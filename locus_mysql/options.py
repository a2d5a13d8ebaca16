"""The options of a connection and of a store, each with its check: `ConnectionOptions` and `StoreOptions`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from .encryption import Encryption
from .errors import ConfigError
from .extras import CLIENT_LIBRARIES, DEFAULT_DRIVER

SSLMode = Literal["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]

#: Identifiers: letters, digits, ``_`` and ``$``; a database may also hold ``-``. MySQL's limit is 64 characters.
_DATABASE, _PREFIX = r"[A-Za-z0-9_$-]{1,64}", r"[A-Za-z_][A-Za-z0-9_]{0,39}|"

#: The public classes by what they store, without the names of their other sides (``Sync…``, ``Async…``).
CHECKPOINTS = ("CheckpointStore", "CrewFlowPersistence", "MySQLBackend", "MySQLCheckpointer", "StrandsStorage")
GRAPHS = ("MySQLCheckpointSaver", "MySQLDeltaStorage", "MySQLSaver")
MEMORIES = (
    *("AdkMemoryService", "CrewMemoryStorage", "KeyValueStore", "MemoryStore"),
    *("MySQLMemory", "MySQLStore", "StrandsMemoryStore"),
)
TRANSCRIPTS = (
    "AdkSessionService",
    "ClaudeSessionStore",
    "OpenAIBranchingSession",
    "OpenAISession",
    "PydanticConversationStore",
    "StrandsSessionRepository",
    "TranscriptStore",
)
WORKING = ("MySQLStorage", "WorkingMemory")
MEMU = ("MemuDatabase", "RecallDatabase")
STORES = (*CHECKPOINTS, *GRAPHS, *MEMORIES, *TRANSCRIPTS, *WORKING, *MEMU)

#: Options that an embedded database does not take.
NOT_EMBEDDED = frozenset({"host", "port", "hosts", "unix_socket", "user", "password"})


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


def _fitting(pattern: str, words: str) -> Callable[[str], str]:
    """Return a check that a text fits a pattern."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(words)
        return value

    return check


def _printable(value: str) -> str:
    if "\0" in value or not value.isprintable():
        raise ValueError("must hold printable characters only")
    return value


def _host(value: str) -> str:
    endpoint_of(value, 1)
    return value


def _each_host(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_host, values))


def _named(value: Any) -> Any:
    if value == "":
        raise ValueError("names no folder")
    return value


def _absolute(folder: Path) -> Path:
    if "\0" in str(folder):
        raise ValueError("must not hold NUL")
    return folder.absolute()  # now, as connections are opened later, when the current folder may be another


def _option(
    default: Any,
    description: str,
    *,
    advanced: bool = False,
    suggested: tuple[str, ...] = (),
    used_by: tuple[str, ...] = STORES,
) -> Any:
    """A field of the configuration, described in Markdown. ``python -m ci.options`` writes documents and types from it.

    Args:
        default: Its default.
        description: What it means.
        advanced: Whether few users set it.
        suggested: The values that an editor suggests, where others are accepted too.
        used_by: The classes that it has an effect on; the others refuse it.
    """
    extra = {"advanced": advanced, "suggested": list(suggested), "used_by": list(used_by)}
    return Field(default, description=description, json_schema_extra=cast(Any, extra))


class ConnectionOptions(BaseModel):
    """Options of the connection to MySQL, shared by all stores of a `Database`. Each field has a description."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=False)

    driver: Annotated[str, Field(min_length=1)] = _option(
        DEFAULT_DRIVER,
        "`mysql-connector`, `aiomysql`, `pymysql`, `asyncmy`, or a name given to `register_driver`. If none is named, "
        "the default's library is not installed and exactly one other is, that one is used.",
        suggested=tuple(CLIENT_LIBRARIES),
    )
    host: Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_host)] = _option(
        "localhost", "Host name or address of the server."
    )
    port: Annotated[int, Field(ge=1, le=65535)] = _option(3306, "TCP port.")
    unix_socket: Annotated[str, Field(min_length=1)] | None = _option(
        None, "Path of the server's socket, instead of host and port."
    )
    embedded: Annotated[Path, BeforeValidator(_named), AfterValidator(_absolute)] | None = _option(
        None,
        "Folder of a database that this process runs by itself, instead of a server's address "
        "([embedded](servers.md#embedded)). In a DSN: `mysql+embedded:///folder`.",
    )
    hosts: Annotated[tuple[str, ...], AfterValidator(_each_host)] = _option(
        (),
        "Several servers, `host` or `host:port`, instead of `host` ([failover](servers.md#failover)). Calls go to the "
        "primary: a new connection asks the servers in this order, and skips one that is read-only, that is not a "
        "working member of its group, or that lacks the database. In a DSN: joined by commas.",
    )
    read_only: bool = _option(
        False,
        "Only read: writes are refused, and a single `host` may be a replica, a secondary of a group, or a reader of "
        "Aurora, whose answers may lack the latest writes ([reading from a replica]"
        "(servers.md#reading-from-a-replica)).",
        advanced=True,
    )
    user: Annotated[str, Field(min_length=1), AfterValidator(_printable)] = _option("root", "Account name.")
    password: SecretStr | PasswordFunction = _option(
        SecretStr(""),
        "Its password. It is never shown. Or a function without arguments, also an `async` one, that returns it: it is "
        "called for each new connection ([short-lived passwords](security.md#short-lived-passwords)).",
    )
    database: Annotated[
        str, AfterValidator(_fitting(_DATABASE, "must be 1 to 64 letters, digits, '_', '$' or '-'"))
    ] = _option(
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
        4,
        "The most connections that are open at once, for each process and each event loop.",
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
        "The server ends a SELECT that runs longer, in seconds (`max_execution_time`), also if its caller was "
        "cancelled or its process killed. It does not apply to writes and locking reads. `None`: `read_timeout_s`, in "
        "whole seconds. `serve` takes 30.",
        advanced=True,
    )
    slow_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = _option(
        None,
        "A call that takes longer, in milliseconds, is logged as a warning by logger `locus_mysql.calls` "
        "([observability](troubleshooting.md#observability)). `None` logs none.",
    )
    pipeline: bool = _option(
        True,
        "Send a transaction as one packet, and writes that wait for a connection [together]"
        "(design/tables.md#group-commit-writes-that-wait-share-a-transaction). Switch it off for proxies that refuse "
        "multi-statement packets: then statements are sent one by one.",
        advanced=True,
    )
    cache_bytes: Annotated[int, Field(ge=0)] = _option(
        33_554_432,
        "Memory for the recently used states of all stores of a `Database`, in bytes. The next save of such a thread "
        "encodes and hashes only what is new, and the next load transfers only what is new. `0` keeps none.",
        advanced=True,
        used_by=(*CHECKPOINTS, *GRAPHS),
    )

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The servers to try, in order. For an embedded database, its folder stands for the server's socket."""
        if self.embedded is not None:
            return (Endpoint(self.host, self.port, str(self.embedded)),)
        if self.unix_socket:
            return (Endpoint(self.host, self.port, self.unix_socket),)
        return tuple(endpoint_of(host, self.port) for host in self.hosts or (self.host,))

    @property
    def password_text(self) -> str:
        """The password as text. The engine replaces a function by what it returns before it calls a driver.

        Raises:
            ConfigError: It is a function.
        """
        if isinstance(self.password, PasswordFunction):
            raise ConfigError("The password must be text here, not a function.")
        return self.password.get_secret_value()

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

    @model_validator(mode="after")
    def _check_contradictions(self) -> Self:
        given = self.model_fields_set
        if self.embedded is not None:
            for name in sorted(given & NOT_EMBEDDED):
                raise ValueError(f"embedded and {name} exclude each other: an embedded database has no address or user")
        if self.unix_socket and (self.hosts or "host" in given):
            raise ValueError("unix_socket and host (or hosts) exclude each other; give one of them")
        if self.hosts and "host" in given:
            raise ValueError("host and hosts exclude each other; give one of them")
        if {"host", "port"} <= given and endpoint_of(self.host, self.port).port != self.port:
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

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, strict=False, arbitrary_types_allowed=True
    )

    tenant: Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)] | None = _option(
        "default",
        "Whose checkpoints these are, 1 to 128 characters. No operation sees another tenant's. With `None`, a call "
        "outside of a [`tenant_scope`](tenants.md) raises `TenantUnknown`.",
    )
    table_prefix: Annotated[
        str, AfterValidator(_fitting(_PREFIX, "must be at most 40 letters, digits and '_', not starting with a digit"))
    ] = _option("locus_", "Put before the names of the tables; at most 40 letters, digits and underscores.")
    ttl_s: Seconds | None = _option(
        None,
        "A thread, transcript or memory expires this many seconds after its last save; `None` keeps it.",
        used_by=tuple(name for name in (*CHECKPOINTS, *GRAPHS, *MEMORIES, *TRANSCRIPTS) if name != "MySQLStore"),
    )
    keep_checkpoints: Annotated[int, Field(ge=1)] | None = _option(
        None,
        "Newest checkpoints kept of each thread, and of graphs in each of its namespaces; `None` keeps all.",
        used_by=("CheckpointStore", "CrewFlowPersistence", "MySQLCheckpointSaver", "MySQLCheckpointer", "MySQLSaver"),
    )
    search: bool = _option(True, "Keep a full-text index.", used_by=(*CHECKPOINTS, *MEMORIES))
    search_parser: Literal["default", "ngram"] = _option(
        "default",
        "`default` finds whole words; `ngram` finds parts of words, for Chinese, Japanese and Korean. Tables that were "
        "made with the other one are refused, with the statement that replaces their index.",
        advanced=True,
        used_by=(*CHECKPOINTS, *MEMORIES),
    )
    compression: Literal["zlib", "none"] = _option(
        "zlib",
        "`zlib` compresses stored rows where that saves space; `none` never does. Either setting reads both.",
        advanced=True,
        used_by=(*CHECKPOINTS, *GRAPHS, *TRANSCRIPTS),
    )
    ddl_mode: Literal["create", "validate", "off"] = _option(
        "create",
        "`create` makes missing tables on first use; `validate` only checks them; `off` does neither.",
    )
    encryption: Encryption | None = _option(
        None,
        '`Encryption(keys={"2026-11": key}, active="2026-11")` encrypts what is stored, and refuses to store it in '
        "clear text ([encryption](security.md#encryption-at-rest)). Not in a DSN. In the environment: `ID=BASE64`, "
        "with the active key first.",
    )

    @property
    def ttl_seconds(self) -> float | None:
        """``ttl_s``, under the name by which Locus' ``StorageBackendAdapter`` recognises a backend with expiry."""
        return self.ttl_s

    @field_validator("encryption", mode="wrap")
    @classmethod
    def _check_encryption(cls, value: Any, _check: object) -> Encryption | None:
        if isinstance(value, str) and value:
            return Encryption.from_text(value)
        if value is None or isinstance(value, Encryption):
            return value
        raise ValueError("must be an Encryption(keys=…, active=…)")

    @model_validator(mode="before")
    @classmethod
    def _switch_off_search(cls, options: Any) -> Any:
        """Encryption switches the full-text index off, which would hold the words in clear text."""
        if isinstance(options, dict) and options.get("encryption") not in (None, ""):
            if "search" not in options:
                return {**options, "search": False}
            if options["search"] not in (False, 0, "0", "false", "False", "no", "off"):
                raise ValueError(
                    "search and encryption exclude each other: a full-text index holds words in clear text"
                )
        return options


def classes_that_use(option: str) -> tuple[str, ...]:
    """Return the public classes on which an option has an effect, without the names of their other sides."""
    field = ConnectionOptions.model_fields.get(option) or StoreOptions.model_fields[option]
    extra: Any = field.json_schema_extra
    return tuple(extra["used_by"])


def refuse_unused(store: type, options: Iterable[str]) -> None:
    """Raise if an option has no effect on a class.

    A class that is not among `STORES`, and has no base among them, uses all options.

    Raises:
        ConfigError: It has none; the message names the classes that use it.
    """
    names = (re.sub("^(Sync|Async)", "", kind.__name__) for kind in store.__mro__)
    name = next((name for name in names if name in STORES), None)
    if name is None:
        return
    for option in sorted({*options} - {"dsn"}):
        if name not in (users := classes_that_use(option)):
            advice = _INSTEAD.get((option, name), "")
            raise ConfigError(
                f"{option} has no effect on {store.__name__}; it is an option of {', '.join(sorted(users))}.{advice} "
                "Leave it out here; or give it to a Database that these stores share."
            )


#: What does the same for a class that does not use an option.
_INSTEAD = {
    ("ttl_s", "MySQLStore"): " Use ttl={'default_ttl': MINUTES}.",
    ("ttl_s", "WorkingMemory"): " Use session_ttl_s.",
    ("keep_checkpoints", "WorkingMemory"): " Use max_checkpoints.",
}


def endpoint_of(host: str, default_port: int) -> Endpoint:
    """Return the endpoint in ``host``, ``host:port``, ``[v6]:port`` or a bare IPv6 address.

    Raises:
        ValueError: It is none of these.
    """
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
