"""memU's metadata store in MySQL: `MemuDatabase` and `AsyncMemuDatabase`."""

from __future__ import annotations

from typing import Unpack

from pydantic import BaseModel, SecretStr

from ...config import Keywords, MySQLConfig
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, SyncStore, awaited, blocking
from .family import own_prefix
from .records import DefaultUserModel
from .repositories import (
    AsyncCategoryRepository,
    AsyncItemRepository,
    AsyncRelationRepository,
    AsyncResourceRepository,
    CategoryRepository,
    ItemRepository,
    RelationRepository,
    ResourceRepository,
)
from .restoring import MemuOperations

#: Memory for the embeddings that repeated searches compare, in bytes.
VECTOR_CACHE_BYTES = 268_435_456


class MemuDatabase(SyncStore[MemuOperations]):
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

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        user_model: type[BaseModel] = DefaultUserModel,
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        store = MemuOperations(own_prefix(config), user_model, vector_cache_bytes)
        super().__init__(store, database, owned=owned)
        self.resource_repo = ResourceRepository(store, self._run)
        self.memory_item_repo = ItemRepository(store, self._run)
        self.memory_category_repo = CategoryRepository(store, self._run)
        self.category_item_repo = RelationRepository(store, self._run)
        self.resources = self.resource_repo.resources
        self.items = self.memory_item_repo.items
        self.categories = self.memory_category_repo.categories
        self.relations = self.category_item_repo.relations

    @blocking(MemuOperations.load_existing)
    def load_existing(self) -> None: ...
    @blocking(MemuOperations.restore)
    def restore(self) -> None: ...


class AsyncMemuDatabase(AsyncStore[MemuOperations]):
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

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        user_model: type[BaseModel] = DefaultUserModel,
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        store = MemuOperations(own_prefix(config), user_model, vector_cache_bytes)
        super().__init__(store, database, owned=owned)
        self.resource_repo = AsyncResourceRepository(store, self._run)
        self.memory_item_repo = AsyncItemRepository(store, self._run)
        self.memory_category_repo = AsyncCategoryRepository(store, self._run)
        self.category_item_repo = AsyncRelationRepository(store, self._run)
        self.resources = self.resource_repo.resources
        self.items = self.memory_item_repo.items
        self.categories = self.memory_category_repo.categories
        self.relations = self.category_item_repo.relations

    @awaited(MemuOperations.load_existing)
    def load_existing(self) -> None: ...
    @awaited(MemuOperations.restore)
    def restore(self) -> None: ...
