"""Builds a database like memU's factory: from memU's configuration, or from a DSN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel, SecretStr

from ...config import Keywords, MySQLConfig
from ...errors import ConfigError
from ...runtime.database import Database
from .database import VECTOR_CACHE_BYTES, AsyncMemuDatabase, MemuDatabase
from .recall_database import AsyncRecallDatabase, RecallDatabase
from .records import DefaultUserModel, RecallUserModel


def build_mysql_database(
    *,
    config: object,
    user_model: type[BaseModel] | None = None,
    vector_cache_bytes: int = VECTOR_CACHE_BYTES,
    **options: Unpack[Keywords],
) -> MemuDatabase:
    """Build the metadata store in MySQL. Creates or checks its tables at once, like memU's other factories.

    Args:
        config: memU's ``DatabaseConfig``, of which ``metadata_store.dsn`` and ``.ddl_mode`` are read, or the same as a
            dict; or a DSN, a `MySQLConfig` or a `Database`.
        user_model: The scope of records, a pydantic model; memU's own, with ``user_id``, if None.
        vector_cache_bytes: See `MemuDatabase`.
        options: Options of `MySQLConfig`.

    Raises:
        ConfigError: The configuration has no DSN, or an option is wrong.
        SchemaMismatch: A table or a column is missing and may not be created; the message names it.
        TypeError: The user model has a field that cannot be a column, or that records already have.
    """
    where = _where(config, options)
    model = user_model or DefaultUserModel
    return _checked(MemuDatabase(where, user_model=model, vector_cache_bytes=vector_cache_bytes, **options))


def build_async_mysql_database(
    *,
    config: object,
    user_model: type[BaseModel] | None = None,
    vector_cache_bytes: int = VECTOR_CACHE_BYTES,
    **options: Unpack[Keywords],
) -> AsyncMemuDatabase:
    """Build the asynchronous metadata store. The first call creates or checks its tables.

    Args:
        config: See `build_mysql_database`, also for the other arguments.
        user_model: The scope of records.
        vector_cache_bytes: See `MemuDatabase`.
        options: Options of `MySQLConfig`.
    """
    where = _where(config, options)
    return AsyncMemuDatabase(
        where, user_model=user_model or DefaultUserModel, vector_cache_bytes=vector_cache_bytes, **options
    )


def build_recall_database(
    *, config: object, user_model: type[BaseModel] | None = None, **options: Unpack[Keywords]
) -> RecallDatabase:
    """Build memu-cli's store in MySQL. Creates or checks its tables at once, like memu-cli's other factories.

    Args:
        config: memu-cli's ``DatabaseConfig``, of which ``metadata_store.dsn`` and ``.ddl_mode`` are read, or the same
            as a dict; or a DSN, a `MySQLConfig` or a `Database`.
        user_model: The scope of records, a pydantic model; memu-cli's own, with ``user_id`` and ``agent_id``, if None.
        options: Options of `MySQLConfig`.

    Raises:
        ConfigError: The configuration has no DSN, or an option is wrong.
        SchemaMismatch: A table or a column is missing and may not be created; the message names it.
        TypeError: The user model has a field that cannot be a column, or that records already have.
    """
    where = _where(config, options)
    return _checked(RecallDatabase(where, user_model=user_model or RecallUserModel, **options))


def build_async_recall_database(
    *, config: object, user_model: type[BaseModel] | None = None, **options: Unpack[Keywords]
) -> AsyncRecallDatabase:
    """Build memu-cli's store for an event loop. The first call creates or checks its tables.

    Args:
        config: See `build_recall_database`, also for the other arguments.
        user_model: The scope of records.
        options: Options of `MySQLConfig`.
    """
    where = _where(config, options)
    return AsyncRecallDatabase(where, user_model=user_model or RecallUserModel, **options)


D = TypeVar("D", MemuDatabase, RecallDatabase)


def _checked(database: D) -> D:
    """Create or check the tables of a new database; close it if that fails."""
    try:
        database.load_existing()
    except BaseException:
        database.close()
        raise
    return database


def _where(config: object, options: Keywords) -> str | SecretStr | MySQLConfig | Database:
    """Return the database that a configuration names; memU's ``ddl_mode`` goes into the options."""
    if isinstance(config, str | SecretStr | MySQLConfig | Database):
        return config
    store = _part(config, "metadata_store")
    dsn = _part(store, "dsn")
    if not isinstance(dsn, str | SecretStr):
        raise ConfigError(
            "The configuration names no database. Give memU's DatabaseConfig with metadata_store.dsn, a DSN such as "
            "'mysql://user:password@host/database', a MySQLConfig or a Database."
        )
    mode = _part(store, "ddl_mode")
    if mode is not None:
        options.setdefault("ddl_mode", mode)
    return dsn


def _part(whole: object, name: str) -> Any:
    """Return a field of an object or of a dict; None if there is none."""
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)
