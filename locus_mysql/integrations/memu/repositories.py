"""memU's repositories: blocking and asynchronous classes with the same methods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ...engine.operation import Operation
from ...runtime.stores import awaited, blocking
from .categories import CategoryOperations
from .items import ItemOperations
from .operations import MemuStore
from .relations import RelationOperations
from .resources import ResourceOperations
from .views import AsyncRecordView, RecordListView, RecordView

#: The class that holds the operations.
Ops = TypeVar("Ops")


class Repository(Generic[Ops]):
    """Base of repositories.

    Args:
        operations: The operations that the methods run.
        run: Runs an operation; returns its result, or an awaitable.
    """

    def __init__(self, operations: Ops, run: Callable[[Operation[Any]], Any]) -> None:
        self._operations = operations
        self._run = run

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class ResourceRepository(Repository[ResourceOperations]):
    """memU's ``ResourceRepo``."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(ResourceOperations(store), run)
        self.resources = RecordView(self._operations, run)

    @blocking(ResourceOperations.list_resources)
    def list_resources(self) -> None: ...
    @blocking(ResourceOperations.clear_resources)
    def clear_resources(self) -> None: ...
    @blocking(ResourceOperations.create_resource)
    def create_resource(self) -> None: ...
    @blocking(ResourceOperations.load_existing)
    def load_existing(self) -> None: ...


class ItemRepository(Repository[ItemOperations]):
    """memU's ``MemoryItemRepo``."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(ItemOperations(store), run)
        self.items = RecordView(self._operations, run)

    @blocking(ItemOperations.get_item)
    def get_item(self) -> None: ...
    @blocking(ItemOperations.list_items)
    def list_items(self) -> None: ...
    @blocking(ItemOperations.clear_items)
    def clear_items(self) -> None: ...
    @blocking(ItemOperations.create_item)
    def create_item(self) -> None: ...
    @blocking(ItemOperations.update_item)
    def update_item(self) -> None: ...
    @blocking(ItemOperations.delete_item)
    def delete_item(self) -> None: ...
    @blocking(ItemOperations.list_items_by_ref_ids)
    def list_items_by_ref_ids(self) -> None: ...
    @blocking(ItemOperations.vector_search_items)
    def vector_search_items(self) -> None: ...
    @blocking(ItemOperations.load_existing)
    def load_existing(self) -> None: ...


class CategoryRepository(Repository[CategoryOperations]):
    """memU's ``MemoryCategoryRepo``."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(CategoryOperations(store), run)
        self.categories = RecordView(self._operations, run)

    @blocking(CategoryOperations.list_categories)
    def list_categories(self) -> None: ...
    @blocking(CategoryOperations.clear_categories)
    def clear_categories(self) -> None: ...
    @blocking(CategoryOperations.get_or_create_category)
    def get_or_create_category(self) -> None: ...
    @blocking(CategoryOperations.update_category)
    def update_category(self) -> None: ...
    @blocking(CategoryOperations.load_existing)
    def load_existing(self) -> None: ...


class RelationRepository(Repository[RelationOperations]):
    """memU's ``CategoryItemRepo``: the relations between items and categories."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(RelationOperations(store), run)
        self.relations = RecordListView(self._operations, run)

    @blocking(RelationOperations.list_relations)
    def list_relations(self) -> None: ...
    @blocking(RelationOperations.link_item_category)
    def link_item_category(self) -> None: ...
    @blocking(RelationOperations.unlink_item_category)
    def unlink_item_category(self) -> None: ...
    @blocking(RelationOperations.get_item_categories)
    def get_item_categories(self) -> None: ...
    @blocking(RelationOperations.load_existing)
    def load_existing(self) -> None: ...


class AsyncResourceRepository(Repository[ResourceOperations]):
    """`ResourceRepository` for an event loop: the same methods, asynchronous."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(ResourceOperations(store), run)
        self.resources = AsyncRecordView(self._operations, run)

    @awaited(ResourceOperations.list_resources)
    def list_resources(self) -> None: ...
    @awaited(ResourceOperations.clear_resources)
    def clear_resources(self) -> None: ...
    @awaited(ResourceOperations.create_resource)
    def create_resource(self) -> None: ...
    @awaited(ResourceOperations.load_existing)
    def load_existing(self) -> None: ...


class AsyncItemRepository(Repository[ItemOperations]):
    """`ItemRepository` for an event loop: the same methods, asynchronous."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(ItemOperations(store), run)
        self.items = AsyncRecordView(self._operations, run)

    @awaited(ItemOperations.get_item)
    def get_item(self) -> None: ...
    @awaited(ItemOperations.list_items)
    def list_items(self) -> None: ...
    @awaited(ItemOperations.clear_items)
    def clear_items(self) -> None: ...
    @awaited(ItemOperations.create_item)
    def create_item(self) -> None: ...
    @awaited(ItemOperations.update_item)
    def update_item(self) -> None: ...
    @awaited(ItemOperations.delete_item)
    def delete_item(self) -> None: ...
    @awaited(ItemOperations.list_items_by_ref_ids)
    def list_items_by_ref_ids(self) -> None: ...
    @awaited(ItemOperations.vector_search_items)
    def vector_search_items(self) -> None: ...
    @awaited(ItemOperations.load_existing)
    def load_existing(self) -> None: ...


class AsyncCategoryRepository(Repository[CategoryOperations]):
    """`CategoryRepository` for an event loop: the same methods, asynchronous."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(CategoryOperations(store), run)
        self.categories = AsyncRecordView(self._operations, run)

    @awaited(CategoryOperations.list_categories)
    def list_categories(self) -> None: ...
    @awaited(CategoryOperations.clear_categories)
    def clear_categories(self) -> None: ...
    @awaited(CategoryOperations.get_or_create_category)
    def get_or_create_category(self) -> None: ...
    @awaited(CategoryOperations.update_category)
    def update_category(self) -> None: ...
    @awaited(CategoryOperations.load_existing)
    def load_existing(self) -> None: ...


class AsyncRelationRepository(Repository[RelationOperations]):
    """`RelationRepository` for an event loop: the same methods, asynchronous."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(RelationOperations(store), run)
        self.relations = AsyncRecordView(self._operations, run)

    @awaited(RelationOperations.list_relations)
    def list_relations(self) -> None: ...
    @awaited(RelationOperations.link_item_category)
    def link_item_category(self) -> None: ...
    @awaited(RelationOperations.unlink_item_category)
    def unlink_item_category(self) -> None: ...
    @awaited(RelationOperations.get_item_categories)
    def get_item_categories(self) -> None: ...
    @awaited(RelationOperations.load_existing)
    def load_existing(self) -> None: ...
