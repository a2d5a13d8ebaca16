"""Locus' built-in MySQL backend on a test's schema: `open_built_in`."""

from __future__ import annotations

from typing import Any

from locus.memory.backends.adapters import StorageBackendAdapter, mysql_checkpointer

from locus_mysql.config import MySQLConfig


def open_built_in(config: MySQLConfig, **options: Any) -> StorageBackendAdapter:
    """Open the backend as its users do. The caller closes it."""
    (endpoint,) = config.endpoints
    return mysql_checkpointer(
        host=endpoint.host,
        port=endpoint.port,
        database=config.database,
        user=config.user,
        password=config.password.get_secret_value(),
        **options,
    )
