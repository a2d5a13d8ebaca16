"""The repositories of both of memU's protocols: blocking and asynchronous classes with the same methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from ...engine.operation import Operation
from ...runtime.stores import awaited_method, blocking_method
from .categories import CategoryOperations
from .items import ItemOperations
from .operations import MemuStore, RecordOperations
from .recall_files import RecallFileOperations
from .records import (
    CategoryItem,
    MemoryCategory,
    MemoryItem,
    RecallFile,
    RecallFileSegment,
    Resource,
    WorkspaceResource,
)
from .relations import RelationOperations
from .resources import ResourceOperations, WorkspaceResourceOperations
from .segments import SegmentOperations
from .views import AsyncRecordView, RecordListView, RecordView

#: The class that holds the operations.
Ops = TypeVar("Ops", bound=RecordOperations[Any])


class Repository(Generic[Ops]):
    """Base of repositories.

    Args:
        store: The store.
        run: Runs an operation; returns its result, or an awaitable.
    """

    #: The class of the operations, the name of the view of all records, and the view's class.
    _kind: ClassVar[type[RecordOperations[Any]]]
    _view: ClassVar[tuple[str, type[Any]]]

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        self._operations: Ops = self._kind(store)  # type: ignore[call-arg, assignment]  # subclasses know their role
        self._run = run
        name, view = self._view
        setattr(self, name, view(self._operations, run))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class _Blocking(Repository[Ops]):
    load_existing = blocking_method(RecordOperations.load_existing)


class _Awaited(Repository[Ops]):
    load_existing = awaited_method(RecordOperations.load_existing)


class ResourceRepository(_Blocking[ResourceOperations]):
    """memU's ``ResourceRepo``."""

    _kind, _view = ResourceOperations, ("resources", RecordView)
    resources: RecordView[Resource]
    list_resources = blocking_method(ResourceOperations.list_resources)
    clear_resources = blocking_method(ResourceOperations.clear_resources)
    create_resource = blocking_method(ResourceOperations.create_resource)


class ItemRepository(_Blocking[ItemOperations]):
    """memU's ``MemoryItemRepo``."""

    _kind, _view = ItemOperations, ("items", RecordView)
    items: RecordView[MemoryItem]
    get_item = blocking_method(ItemOperations.get_item)
    list_items = blocking_method(ItemOperations.list_items)
    clear_items = blocking_method(ItemOperations.clear_items)
    create_item = blocking_method(ItemOperations.create_item)
    update_item = blocking_method(ItemOperations.update_item)
    delete_item = blocking_method(ItemOperations.delete_item)
    list_items_by_ref_ids = blocking_method(ItemOperations.list_items_by_ref_ids)
    vector_search_items = blocking_method(ItemOperations.vector_search_items)


class CategoryRepository(_Blocking[CategoryOperations]):
    """memU's ``MemoryCategoryRepo``."""

    _kind, _view = CategoryOperations, ("categories", RecordView)
    categories: RecordView[MemoryCategory]
    list_categories = blocking_method(CategoryOperations.list_categories)
    clear_categories = blocking_method(CategoryOperations.clear_categories)
    get_or_create_category = blocking_method(CategoryOperations.get_or_create_category)
    update_category = blocking_method(CategoryOperations.update_category)


class RelationRepository(_Blocking[RelationOperations]):
    """memU's ``CategoryItemRepo``: the relations between items and categories."""

    _kind, _view = RelationOperations, ("relations", RecordListView)
    relations: RecordListView[CategoryItem]
    list_relations = blocking_method(RelationOperations.list_relations)
    link_item_category = blocking_method(RelationOperations.link_item_category)
    unlink_item_category = blocking_method(RelationOperations.unlink_item_category)
    get_item_categories = blocking_method(RelationOperations.get_item_categories)


class AsyncResourceRepository(_Awaited[ResourceOperations]):
    """`ResourceRepository` for an event loop: the same methods, asynchronous."""

    _kind, _view = ResourceOperations, ("resources", AsyncRecordView)
    resources: AsyncRecordView[Resource]
    list_resources = awaited_method(ResourceOperations.list_resources)
    clear_resources = awaited_method(ResourceOperations.clear_resources)
    create_resource = awaited_method(ResourceOperations.create_resource)


class AsyncItemRepository(_Awaited[ItemOperations]):
    """`ItemRepository` for an event loop: the same methods, asynchronous."""

    _kind, _view = ItemOperations, ("items", AsyncRecordView)
    items: AsyncRecordView[MemoryItem]
    get_item = awaited_method(ItemOperations.get_item)
    list_items = awaited_method(ItemOperations.list_items)
    clear_items = awaited_method(ItemOperations.clear_items)
    create_item = awaited_method(ItemOperations.create_item)
    update_item = awaited_method(ItemOperations.update_item)
    delete_item = awaited_method(ItemOperations.delete_item)
    list_items_by_ref_ids = awaited_method(ItemOperations.list_items_by_ref_ids)
    vector_search_items = awaited_method(ItemOperations.vector_search_items)


class AsyncCategoryRepository(_Awaited[CategoryOperations]):
    """`CategoryRepository` for an event loop: the same methods, asynchronous."""

    _kind, _view = CategoryOperations, ("categories", AsyncRecordView)
    categories: AsyncRecordView[MemoryCategory]
    list_categories = awaited_method(CategoryOperations.list_categories)
    clear_categories = awaited_method(CategoryOperations.clear_categories)
    get_or_create_category = awaited_method(CategoryOperations.get_or_create_category)
    update_category = awaited_method(CategoryOperations.update_category)


class AsyncRelationRepository(_Awaited[RelationOperations]):
    """`RelationRepository` for an event loop: the same methods, asynchronous."""

    _kind, _view = RelationOperations, ("relations", AsyncRecordView)
    relations: AsyncRecordView[CategoryItem]
    list_relations = awaited_method(RelationOperations.list_relations)
    link_item_category = awaited_method(RelationOperations.link_item_category)
    unlink_item_category = awaited_method(RelationOperations.unlink_item_category)
    get_item_categories = awaited_method(RelationOperations.get_item_categories)


class WorkspaceResourceRepository(_Blocking[WorkspaceResourceOperations]):
    """memu-cli's ``ResourceRepo``."""

    _kind, _view = WorkspaceResourceOperations, ("resources", RecordView)
    resources: RecordView[WorkspaceResource]
    list_resources = blocking_method(WorkspaceResourceOperations.list_resources)
    clear_resources = blocking_method(WorkspaceResourceOperations.clear_resources)
    create_resource = blocking_method(WorkspaceResourceOperations.create_resource)
    delete_resource = blocking_method(WorkspaceResourceOperations.delete_resource)
    vector_search_resources = blocking_method(WorkspaceResourceOperations.vector_search_resources)


class RecallFileRepository(_Blocking[RecallFileOperations]):
    """memu-cli's ``RecallFileRepo``."""

    _kind, _view = RecallFileOperations, ("recall_files", RecordView)
    recall_files: RecordView[RecallFile]
    list_recall_files = blocking_method(RecallFileOperations.list_recall_files)
    list_recall_files_page = blocking_method(RecallFileOperations.list_recall_files_page)
    clear_recall_files = blocking_method(RecallFileOperations.clear_recall_files)
    get_or_create_recall_file = blocking_method(RecallFileOperations.get_or_create_recall_file)
    update_recall_file = blocking_method(RecallFileOperations.update_recall_file)


class SegmentRepository(_Blocking[SegmentOperations]):
    """memu-cli's ``RecallFileSegmentRepo``."""

    _kind, _view = SegmentOperations, ("segments", RecordListView)
    segments: RecordListView[RecallFileSegment]
    list_segments = blocking_method(SegmentOperations.list_segments)
    list_segments_for_file = blocking_method(SegmentOperations.list_segments_for_file)
    create_segment = blocking_method(SegmentOperations.create_segment)
    delete_segment = blocking_method(SegmentOperations.delete_segment)
    delete_segments_for_file = blocking_method(SegmentOperations.delete_segments_for_file)
    clear_segments = blocking_method(SegmentOperations.clear_segments)


class AsyncWorkspaceResourceRepository(_Awaited[WorkspaceResourceOperations]):
    """`WorkspaceResourceRepository` for an event loop: the same methods, asynchronous."""

    _kind, _view = WorkspaceResourceOperations, ("resources", AsyncRecordView)
    resources: AsyncRecordView[WorkspaceResource]
    list_resources = awaited_method(WorkspaceResourceOperations.list_resources)
    clear_resources = awaited_method(WorkspaceResourceOperations.clear_resources)
    create_resource = awaited_method(WorkspaceResourceOperations.create_resource)
    delete_resource = awaited_method(WorkspaceResourceOperations.delete_resource)
    vector_search_resources = awaited_method(WorkspaceResourceOperations.vector_search_resources)


class AsyncRecallFileRepository(_Awaited[RecallFileOperations]):
    """`RecallFileRepository` for an event loop: the same methods, asynchronous."""

    _kind, _view = RecallFileOperations, ("recall_files", AsyncRecordView)
    recall_files: AsyncRecordView[RecallFile]
    list_recall_files = awaited_method(RecallFileOperations.list_recall_files)
    list_recall_files_page = awaited_method(RecallFileOperations.list_recall_files_page)
    clear_recall_files = awaited_method(RecallFileOperations.clear_recall_files)
    get_or_create_recall_file = awaited_method(RecallFileOperations.get_or_create_recall_file)
    update_recall_file = awaited_method(RecallFileOperations.update_recall_file)


class AsyncSegmentRepository(_Awaited[SegmentOperations]):
    """`SegmentRepository` for an event loop: the same methods, asynchronous."""

    _kind, _view = SegmentOperations, ("segments", AsyncRecordView)
    segments: AsyncRecordView[RecallFileSegment]
    list_segments = awaited_method(SegmentOperations.list_segments)
    list_segments_for_file = awaited_method(SegmentOperations.list_segments_for_file)
    create_segment = awaited_method(SegmentOperations.create_segment)
    delete_segment = awaited_method(SegmentOperations.delete_segment)
    delete_segments_for_file = awaited_method(SegmentOperations.delete_segments_for_file)
    clear_segments = awaited_method(SegmentOperations.clear_segments)
