"""memu-cli's repositories: blocking and asynchronous classes with the same methods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ...engine.operation import Operation
from ...runtime.stores import awaited, blocking
from .operations import MemuStore
from .recall_files import RecallFileOperations
from .repositories import Repository
from .resources import WorkspaceResourceOperations
from .segments import SegmentOperations
from .views import AsyncRecordView, RecordListView, RecordView


class WorkspaceResourceRepository(Repository[WorkspaceResourceOperations]):
    """memu-cli's ``ResourceRepo``."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(WorkspaceResourceOperations(store), run)
        self.resources = RecordView(self._operations, run)

    @blocking(WorkspaceResourceOperations.list_resources)
    def list_resources(self) -> None: ...
    @blocking(WorkspaceResourceOperations.clear_resources)
    def clear_resources(self) -> None: ...
    @blocking(WorkspaceResourceOperations.create_resource)
    def create_resource(self) -> None: ...
    @blocking(WorkspaceResourceOperations.delete_resource)
    def delete_resource(self) -> None: ...
    @blocking(WorkspaceResourceOperations.vector_search_resources)
    def vector_search_resources(self) -> None: ...
    @blocking(WorkspaceResourceOperations.load_existing)
    def load_existing(self) -> None: ...


class RecallFileRepository(Repository[RecallFileOperations]):
    """memu-cli's ``RecallFileRepo``."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(RecallFileOperations(store), run)
        self.recall_files = RecordView(self._operations, run)

    @blocking(RecallFileOperations.list_recall_files)
    def list_recall_files(self) -> None: ...
    @blocking(RecallFileOperations.list_recall_files_page)
    def list_recall_files_page(self) -> None: ...
    @blocking(RecallFileOperations.clear_recall_files)
    def clear_recall_files(self) -> None: ...
    @blocking(RecallFileOperations.get_or_create_recall_file)
    def get_or_create_recall_file(self) -> None: ...
    @blocking(RecallFileOperations.update_recall_file)
    def update_recall_file(self) -> None: ...
    @blocking(RecallFileOperations.load_existing)
    def load_existing(self) -> None: ...


class SegmentRepository(Repository[SegmentOperations]):
    """memu-cli's ``RecallFileSegmentRepo``."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Any]) -> None:
        super().__init__(SegmentOperations(store), run)
        self.segments = RecordListView(self._operations, run)

    @blocking(SegmentOperations.list_segments)
    def list_segments(self) -> None: ...
    @blocking(SegmentOperations.list_segments_for_file)
    def list_segments_for_file(self) -> None: ...
    @blocking(SegmentOperations.create_segment)
    def create_segment(self) -> None: ...
    @blocking(SegmentOperations.delete_segment)
    def delete_segment(self) -> None: ...
    @blocking(SegmentOperations.delete_segments_for_file)
    def delete_segments_for_file(self) -> None: ...
    @blocking(SegmentOperations.clear_segments)
    def clear_segments(self) -> None: ...
    @blocking(SegmentOperations.load_existing)
    def load_existing(self) -> None: ...


class AsyncWorkspaceResourceRepository(Repository[WorkspaceResourceOperations]):
    """`WorkspaceResourceRepository` for an event loop: the same methods, asynchronous."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(WorkspaceResourceOperations(store), run)
        self.resources = AsyncRecordView(self._operations, run)

    @awaited(WorkspaceResourceOperations.list_resources)
    def list_resources(self) -> None: ...
    @awaited(WorkspaceResourceOperations.clear_resources)
    def clear_resources(self) -> None: ...
    @awaited(WorkspaceResourceOperations.create_resource)
    def create_resource(self) -> None: ...
    @awaited(WorkspaceResourceOperations.delete_resource)
    def delete_resource(self) -> None: ...
    @awaited(WorkspaceResourceOperations.vector_search_resources)
    def vector_search_resources(self) -> None: ...
    @awaited(WorkspaceResourceOperations.load_existing)
    def load_existing(self) -> None: ...


class AsyncRecallFileRepository(Repository[RecallFileOperations]):
    """`RecallFileRepository` for an event loop: the same methods, asynchronous."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(RecallFileOperations(store), run)
        self.recall_files = AsyncRecordView(self._operations, run)

    @awaited(RecallFileOperations.list_recall_files)
    def list_recall_files(self) -> None: ...
    @awaited(RecallFileOperations.list_recall_files_page)
    def list_recall_files_page(self) -> None: ...
    @awaited(RecallFileOperations.clear_recall_files)
    def clear_recall_files(self) -> None: ...
    @awaited(RecallFileOperations.get_or_create_recall_file)
    def get_or_create_recall_file(self) -> None: ...
    @awaited(RecallFileOperations.update_recall_file)
    def update_recall_file(self) -> None: ...
    @awaited(RecallFileOperations.load_existing)
    def load_existing(self) -> None: ...


class AsyncSegmentRepository(Repository[SegmentOperations]):
    """`SegmentRepository` for an event loop: the same methods, asynchronous."""

    def __init__(self, store: MemuStore, run: Callable[[Operation[Any]], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(SegmentOperations(store), run)
        self.segments = AsyncRecordView(self._operations, run)

    @awaited(SegmentOperations.list_segments)
    def list_segments(self) -> None: ...
    @awaited(SegmentOperations.list_segments_for_file)
    def list_segments_for_file(self) -> None: ...
    @awaited(SegmentOperations.create_segment)
    def create_segment(self) -> None: ...
    @awaited(SegmentOperations.delete_segment)
    def delete_segment(self) -> None: ...
    @awaited(SegmentOperations.delete_segments_for_file)
    def delete_segments_for_file(self) -> None: ...
    @awaited(SegmentOperations.clear_segments)
    def clear_segments(self) -> None: ...
    @awaited(SegmentOperations.load_existing)
    def load_existing(self) -> None: ...
