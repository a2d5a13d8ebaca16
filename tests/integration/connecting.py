"""`connect`: opens connections with which tests prepare and check data directly."""

from __future__ import annotations

import ssl
from functools import cache
from typing import Any

import pymysql

from locus_mysql import MySQLConfig

from .engines import ENGINE


def connect(config: MySQLConfig, database: str | None = None, *, autocommit: bool = True) -> pymysql.Connection[Any]:
    """Connect as the configuration's user, with ``database`` selected if it is given."""
    (endpoint, *_) = config.endpoints
    return pymysql.connect(
        host=endpoint.host,
        port=endpoint.port,
        unix_socket=endpoint.unix_socket,
        user=config.user,
        password=config.password.get_secret_value().encode(),
        database=database,
        autocommit=autocommit,
        **_tls(endpoint.host),
    )


def _tls(host: str | None) -> dict[str, Any]:
    """Return PyMySQL's options for TLS: without it on this machine, where a handshake costs 4 ms for each test."""
    if (
        host in {"127.0.0.1", "localhost"} or ENGINE != "mysql"
    ):  # the private server of another engine has no certificate
        return {"ssl_disabled": True}
    return {"ssl": _trusting()}


@cache
def _trusting() -> ssl.SSLContext:
    """Return a shared TLS context. PyMySQL's own, one per connection, each read all system certificates (20 ms)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
