"""memU's and memu-cli's stores in MySQL, and the functions that build them like the factories of both packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel, SecretStr

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...errors import ConfigError
from ...runtime.database import Database, Where, share
from ...runtime.stores import AsyncStore, Method, Store, SyncStore
from .items import CategoryOperations, ItemOperations, RelationOperations
from .operations import RecordOperations
from .recall_files import (
    RecallFileOperations,
    ResourceOperations,
    SegmentOperations,
    WorkspaceResourceOperations,
)
from .records import DefaultUserModel, RecallUserModel
from .repositories import Repository, repository
from .restoring import MemuOperations
from .tables import own_prefix

#: Memory for the embeddings that repeated searches compare, in bytes.
VECTOR_CACHE_BYTES = 268_435_456


class _Records(Store[MemuOperations]):
    """The methods that no repository has."""

    load_existing = Method(MemuOperations.load_existing)
    restore = Method(MemuOperations.restore)


class _MemuRepositories(_Records):
    """The repositories of memU 1.5.1, and their views."""

    resource_repo: Repository
    memory_item_repo: Repository
    memory_category_repo: Repository
    category_item_repo: Repository
    resources: Any
    items: Any
    categories: Any
    relations: Any

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        user_model: type[BaseModel] = DefaultUserModel,
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(MemuOperations(own_prefix(config), user_model, vector_cache_bytes), database, owned=owned)
        _add(self, "resource_repo", ResourceOperations)
        _add(self, "memory_item_repo", ItemOperations)
        _add(self, "memory_category_repo", CategoryOperations)
        _add(self, "category_item_repo", RelationOperations)


class _RecallRepositories(_Records):
    """The repositories of memu-cli, and their views."""

    resource_repo: Repository
    recall_file_repo: Repository
    recall_file_segment_repo: Repository
    resources: Any
    recall_files: Any
    segments: Any

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        user_model: type[BaseModel] = RecallUserModel,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(MemuOperations(own_prefix(config), user_model), database, owned=owned)
        _add(self, "resource_repo", WorkspaceResourceOperations)
        _add(self, "recall_file_repo", RecallFileOperations)
        _add(self, "recall_file_segment_repo", SegmentOperations)


def _add(store: Any, name: str, kind: type[RecordOperations[Any]]) -> None:
    """Give a store a repository under this name, and its view."""
    made = repository(kind, store._operations, store._run, awaits=isinstance(store, AsyncStore))
    setattr(store, name, made)
    setattr(store, kind.view, getattr(made, kind.view))


class MemuDatabase(_MemuRepositories, SyncStore[MemuOperations]):
    """memU's metadata store in MySQL, by the protocols of memU 1.5.1; imports nothing from memU. Thread-safe.

    ``resources``, ``items``, ``categories`` and ``relations`` behave like dictionaries and a list, and query the
    database at each access.

    Args:
        where: A DSN (also in SQLAlchemy's form, ``mysql+pymysql://…``), a `MySQLConfig` or a `Database`; or give
            options as keywords.
        user_model: A pydantic model of the scope of records: each field is an indexed column. By default memU's own,
            with ``user_id``.
        vector_cache_bytes: Memory for the embeddings that repeated searches compare, as an LRU cache.
        options: Options of `MySQLConfig`; ``table_prefix`` is empty here, unless it is given.

    Raises:
        TypeError: The user model has a field that cannot be a column, or that records already have.
        ConfigError: An option is unknown, wrong, or contradicts another.

    Example:
        ```python
        with MemuDatabase("mysql://user:password@localhost/app") as db:
            ada = {"user_id": "ada"}
            item = db.memory_item_repo.create_item(
                memory_type="profile", summary="Ada likes tea", embedding=[0.9, 0.1], user_data=ada
            )
            ((found, _),) = db.memory_item_repo.vector_search_items([1.0, 0.0], 1, where=ada)
            assert db.items[found].summary == "Ada likes tea"
            db.memory_item_repo.delete_item(item.id)
        ```
    """

    _awaited_class = "AsyncMemuDatabase"


class AsyncMemuDatabase(_MemuRepositories, AsyncStore[MemuOperations]):
    """`MemuDatabase` for an event loop: its repositories have the same methods, asynchronous.

    ``resources``, ``items``, ``categories`` and ``relations`` have ``await view.get(id)``, ``await view.copy()``,
    ``await view.count()`` and ``async for id in view``.

    Args:
        where: See `MemuDatabase`, also for the other arguments.
        user_model: The scope of records.
        vector_cache_bytes: The size of the cache of embeddings.
        options: Options of `MySQLConfig`.
    """

    _blocking_class = "MemuDatabase"


class RecallDatabase(_RecallRepositories, SyncStore[MemuOperations]):
    """memu-cli's store in MySQL, by the protocols of memu-cli 0.6 to 0.10; imports nothing from memU. Thread-safe.

    ``resources``, ``recall_files`` and ``segments`` behave like dictionaries and a list, and query the database at
    each access. The tables are those of `MemuDatabase`, which has the same resources.

    Args:
        where: A DSN (also in SQLAlchemy's form, ``mysql+pymysql://…``), a `MySQLConfig` or a `Database`; or give
            options as keywords.
        user_model: A pydantic model of the scope of records: each field is an indexed column. By default memu-cli's
            own, with ``user_id`` and ``agent_id``.
        options: Options of `MySQLConfig`; ``table_prefix`` is empty here, unless it is given.

    Raises:
        TypeError: The user model has a field that cannot be a column, or that records already have.
        ConfigError: An option is unknown, wrong, or contradicts another.

    Example:
        ```python
        with RecallDatabase("mysql://user:password@localhost/app") as db:
            ada = {"user_id": "ada"}
            file = db.recall_file_repo.get_or_create_recall_file(
                name="drinks", description="what Ada drinks", embedding=[0.9, 0.1], user_data=ada
            )
            db.recall_file_segment_repo.create_segment(
                recall_file_id=file.id, text="Ada likes tea", embedding=[0.9, 0.1], user_data=ada
            )
            (segment,) = db.recall_file_segment_repo.list_segments_for_file(file.id)
            assert db.recall_files[segment.recall_file_id].name == "drinks"
            db.recall_file_segment_repo.clear_segments(ada)
            db.recall_file_repo.clear_recall_files(ada)
        ```
    """

    _awaited_class = "AsyncRecallDatabase"


class AsyncRecallDatabase(_RecallRepositories, AsyncStore[MemuOperations]):
    """`RecallDatabase` for an event loop: its repositories have the same methods, asynchronous.

    ``resources``, ``recall_files`` and ``segments`` have ``await view.get(id)``, ``await view.copy()``,
    ``await view.count()`` and ``async for id in view``.

    Args:
        where: See `RecallDatabase`, also for the other arguments.
        user_model: The scope of records.
        options: Options of `MySQLConfig`.
    """

    _blocking_class = "RecallDatabase"


D = TypeVar("D", MemuDatabase, RecallDatabase)


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
    where, model = _where(config, options), user_model or DefaultUserModel
    return _checked(MemuDatabase(where, user_model=model, vector_cache_bytes=vector_cache_bytes, **options))


def build_async_mysql_database(
    *,
    config: object,
    user_model: type[BaseModel] | None = None,
    vector_cache_bytes: int = VECTOR_CACHE_BYTES,
    **options: Unpack[Keywords],
) -> AsyncMemuDatabase:
    """Build the asynchronous metadata store; see `build_mysql_database`. The first call creates its tables."""
    where, model = _where(config, options), user_model or DefaultUserModel
    return AsyncMemuDatabase(where, user_model=model, vector_cache_bytes=vector_cache_bytes, **options)


def build_recall_database(
    *, config: object, user_model: type[BaseModel] | None = None, **options: Unpack[Keywords]
) -> RecallDatabase:
    """Build memu-cli's store in MySQL. Creates or checks its tables at once, like memu-cli's other factories.

    Args:
        config: See `build_mysql_database`, also for the errors.
        user_model: The scope of records; memu-cli's own, with ``user_id`` and ``agent_id``, if None.
        options: Options of `MySQLConfig`.
    """
    where = _where(config, options)
    return _checked(RecallDatabase(where, user_model=user_model or RecallUserModel, **options))


def build_async_recall_database(
    *, config: object, user_model: type[BaseModel] | None = None, **options: Unpack[Keywords]
) -> AsyncRecallDatabase:
    """Build memu-cli's store for an event loop; see `build_recall_database`. The first call creates its tables."""
    where = _where(config, options)
    return AsyncRecallDatabase(where, user_model=user_model or RecallUserModel, **options)


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
