"""Databases for measurements, and the server's version and durability."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

import pymysql

from locus_mysql import MySQLConfig

SETTINGS = (
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "log_bin",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
)


def _connect(config: MySQLConfig) -> pymysql.Connection:
    return pymysql.connect(
        host=config.host,
        port=config.port,
        user=config.user,
        password=config.password.get_secret_value(),
        autocommit=True,
    )


@contextmanager
def fresh_database(dsn: str) -> Iterator[str]:
    """Create a database on the same server, yield its DSN, and drop it at the end."""
    config = MySQLConfig(dsn=dsn)
    name = f"locus_bench_{uuid4().hex[:12]}"
    with _connect(config) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{name}`")
        try:
            password = quote(config.password.get_secret_value(), safe="")
            yield f"mysql://{quote(config.user, safe='')}:{password}@{config.host}:{config.port}/{name}"
        finally:
            cursor.execute(f"DROP DATABASE `{name}`")


def server_facts(dsn: str) -> dict[str, str]:
    """Return version and durability of the MySQL server."""
    with _connect(MySQLConfig(dsn=dsn)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        ((version,),) = cursor.fetchall()
        settings = []
        for name in SETTINGS:
            cursor.execute(f"SELECT @@{name}")
            ((value,),) = cursor.fetchall()
            settings.append(f"{name}={value}")
        cursor.execute("SHOW STATUS LIKE 'Ssl_server_not_after'")
        offers_tls = any(value for _, value in cursor.fetchall())
    return {"MySQL": ", ".join([version, *settings, "TLS" if offers_tls else "no TLS"])}
