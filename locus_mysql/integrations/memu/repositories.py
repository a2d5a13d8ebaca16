"""memU's repositories: the same operations, blocking and awaited."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ...database.methods import awaited, blocking
from ...engine.operation import Operation
from .categories import CategoryOperations
from .items import ItemOperations
from .operations import MemuStore
from .relations import RelationOperations
from .resources import ResourceOperations
from .views import AsyncRecordView, RecordView, RelationView

O = TypeVar("O")  # noqa: E741 - operations


class Repository(Generic[O]):
    """Base of repositories.

    Args:
        operations: What the methods run.
        run: Runs an operation: blocking, or to be awaited.
    """

    def __init__(self, operations: O, run: Callable[[Operation[Any]], Any]) -> None:
        self._operations = operations
        self._run = run

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class ResourceRepository(Repository[ResourceOperations]):
    """memU's ``ResourceRepo``: what was remembered from."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(ResourceOperations(store), run)
        self.resources = RecordView(self._operations, run)

    list_resources = blocking(ResourceOperations.list_resources)
    clear_resources = blocking(ResourceOperations.clear_resources)
    create_resource = blocking(ResourceOperations.create_resource)
    load_existing = blocking(ResourceOperations.load_existing)


class ItemRepository(Repository[ItemOperations]):
    """memU's ``MemoryItemRepo``: what is remembered."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(ItemOperations(store), run)
        self.items = RecordView(self._operations, run)

    get_item = blocking(ItemOperations.get_item)
    list_items = blocking(ItemOperations.list_items)
    clear_items = blocking(ItemOperations.clear_items)
    create_item = blocking(ItemOperations.create_item)
    update_item = blocking(ItemOperations.update_item)
    delete_item = blocking(ItemOperations.delete_item)
    list_items_by_ref_ids = blocking(ItemOperations.list_items_by_ref_ids)
    vector_search_items = blocking(ItemOperations.vector_search_items)
    load_existing = blocking(ItemOperations.load_existing)


class CategoryRepository(Repository[CategoryOperations]):
    """memU's ``MemoryCategoryRepo``: what items are about."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(CategoryOperations(store), run)
        self.categories = RecordView(self._operations, run)

    list_categories = blocking(CategoryOperations.list_categories)
    clear_categories = blocking(CategoryOperations.clear_categories)
    get_or_create_category = blocking(CategoryOperations.get_or_create_category)
    update_category = blocking(CategoryOperations.update_category)
    load_existing = blocking(CategoryOperations.load_existing)


class RelationRepository(Repository[RelationOperations]):
    """memU's ``CategoryItemRepo``: which items belong to which categories."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(RelationOperations(store), run)
        self.relations = RelationView(self._operations, run)

    list_relations = blocking(RelationOperations.list_relations)
    link_item_category = blocking(RelationOperations.link_item_category)
    unlink_item_category = blocking(RelationOperations.unlink_item_category)
    get_item_categories = blocking(RelationOperations.get_item_categories)
    load_existing = blocking(RelationOperations.load_existing)


class AsyncResourceRepository(Repository[ResourceOperations]):
    """`ResourceRepository` for an event loop: the same methods, awaited."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(ResourceOperations(store), run)
        self.resources = AsyncRecordView(self._operations, run)

    list_resources = awaited(ResourceOperations.list_resources)
    clear_resources = awaited(ResourceOperations.clear_resources)
    create_resource = awaited(ResourceOperations.create_resource)
    load_existing = awaited(ResourceOperations.load_existing)


class AsyncItemRepository(Repository[ItemOperations]):
    """`ItemRepository` for an event loop: the same methods, awaited."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(ItemOperations(store), run)
        self.items = AsyncRecordView(self._operations, run)

    get_item = awaited(ItemOperations.get_item)
    list_items = awaited(ItemOperations.list_items)
    clear_items = awaited(ItemOperations.clear_items)
    create_item = awaited(ItemOperations.create_item)
    update_item = awaited(ItemOperations.update_item)
    delete_item = awaited(ItemOperations.delete_item)
    list_items_by_ref_ids = awaited(ItemOperations.list_items_by_ref_ids)
    vector_search_items = awaited(ItemOperations.vector_search_items)
    load_existing = awaited(ItemOperations.load_existing)


class AsyncCategoryRepository(Repository[CategoryOperations]):
    """`CategoryRepository` for an event loop: the same methods, awaited."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(CategoryOperations(store), run)
        self.categories = AsyncRecordView(self._operations, run)

    list_categories = awaited(CategoryOperations.list_categories)
    clear_categories = awaited(CategoryOperations.clear_categories)
    get_or_create_category = awaited(CategoryOperations.get_or_create_category)
    update_category = awaited(CategoryOperations.update_category)
    load_existing = awaited(CategoryOperations.load_existing)


class AsyncRelationRepository(Repository[RelationOperations]):
    """`RelationRepository` for an event loop: the same methods, awaited."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(RelationOperations(store), run)
        self.relations = AsyncRecordView(self._operations, run)

    list_relations = awaited(RelationOperations.list_relations)
    link_item_category = awaited(RelationOperations.link_item_category)
    unlink_item_category = awaited(RelationOperations.unlink_item_category)
    get_item_categories = awaited(RelationOperations.get_item_categories)
    load_existing = awaited(RelationOperations.load_existing)
