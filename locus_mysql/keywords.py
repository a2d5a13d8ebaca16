"""The options of `config` as keywords, for type checkers. Written by ``python -m ci.options``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, TypedDict

from pydantic import SecretStr

from .encryption import Encryption


class ConnectionKeywords(TypedDict, total=False):
    """The options of a connection; and the DSN, which may hold others as well."""

    dsn: str | SecretStr
    driver: Literal["mysql-connector", "aiomysql", "pymysql", "asyncmy"] | str
    host: str
    port: int
    unix_socket: str | None
    embedded: str | Path | None
    hosts: tuple[str, ...] | list[str]
    read_only: bool
    user: str
    password: str | SecretStr | Callable[[], str | SecretStr | Awaitable[str | SecretStr]]
    database: str
    ssl_mode: Literal["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"]
    ssl_ca: str | Path | None
    ssl_cert: str | Path | None
    ssl_key: str | Path | None
    cleartext_password: bool
    connect_timeout_s: float
    read_timeout_s: float
    write_timeout_s: float
    pool_size: int
    pool_timeout_s: float
    pool_idle_s: float
    pool_max_age_s: float
    retry_deadline_s: float
    select_timeout_s: float | None
    slow_ms: float | None
    pipeline: bool
    cache_bytes: int


class StoreKeywords(TypedDict, total=False):
    """The options of a store."""

    tenant: str | None
    table_prefix: str
    ttl_s: float | None
    keep_checkpoints: int | None
    search: bool
    search_parser: Literal["default", "ngram"]
    compression: Literal["zlib", "none"]
    ddl_mode: Literal["create", "validate", "off"]
    encryption: Encryption | None


class Keywords(ConnectionKeywords, StoreKeywords, total=False):
    """All options."""
