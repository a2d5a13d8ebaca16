"""Connections of the tests themselves, to prepare and to look: `connect`."""

from __future__ import annotations

import ssl
from functools import cache
from typing import Any

import pymysql

from locus_mysql import MySQLConfig


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
        ssl=_trusting(),
    )


@cache
def _trusting() -> ssl.SSLContext:
    """PyMySQL makes a context for each connection, and each reads all of the system's certificates: 20 ms of CPU."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
