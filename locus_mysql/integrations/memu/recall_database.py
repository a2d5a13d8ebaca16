"""memu-cli's store in MySQL: `RecallDatabase` and `AsyncRecallDatabase`."""

from __future__ import annotations

from typing import Unpack

from pydantic import BaseModel, SecretStr

from ...config import Keywords, MySQLConfig
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, SyncStore, awaited, blocking
from .family import own_prefix
from .records import RecallUserModel
from .repositories import (
    AsyncRecallFileRepository,
    AsyncSegmentRepository,
    AsyncWorkspaceResourceRepository,
    RecallFileRepository,
    SegmentRepository,
    WorkspaceResourceRepository,
)
from .restoring import MemuOperations


class RecallDatabase(SyncStore[MemuOperations]):
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

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        user_model: type[BaseModel] = RecallUserModel,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        store = MemuOperations(own_prefix(config), user_model, 0)
        super().__init__(store, database, owned=owned)
        self.resource_repo = WorkspaceResourceRepository(store, self._run)
        self.recall_file_repo = RecallFileRepository(store, self._run)
        self.recall_file_segment_repo = SegmentRepository(store, self._run)
        self.resources = self.resource_repo.resources
        self.recall_files = self.recall_file_repo.recall_files
        self.segments = self.recall_file_segment_repo.segments

    @blocking(MemuOperations.load_existing)
    def load_existing(self) -> None: ...
    @blocking(MemuOperations.restore)
    def restore(self) -> None: ...


class AsyncRecallDatabase(AsyncStore[MemuOperations]):
    """`RecallDatabase` for an event loop: its repositories have the same methods, asynchronous.

    ``resources``, ``recall_files`` and ``segments`` have ``await view.get(id)``, ``await view.copy()``,
    ``await view.count()`` and ``async for id in view``.

    Args:
        where: See `RecallDatabase`, also for the other arguments.
        user_model: The scope of records.
        options: Options of `MySQLConfig`.
    """

    _blocking_class = "RecallDatabase"

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        user_model: type[BaseModel] = RecallUserModel,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        store = MemuOperations(own_prefix(config), user_model, 0)
        super().__init__(store, database, owned=owned)
        self.resource_repo = AsyncWorkspaceResourceRepository(store, self._run)
        self.recall_file_repo = AsyncRecallFileRepository(store, self._run)
        self.recall_file_segment_repo = AsyncSegmentRepository(store, self._run)
        self.resources = self.resource_repo.resources
        self.recall_files = self.recall_file_repo.recall_files
        self.segments = self.recall_file_segment_repo.segments

    @awaited(MemuOperations.load_existing)
    def load_existing(self) -> None: ...
    @awaited(MemuOperations.restore)
    def restore(self) -> None: ...
