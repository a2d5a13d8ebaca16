"""Locus' storage-backend interface over plain dicts: `MySQLBackend` and `SyncMySQLBackend`."""

from __future__ import annotations

from typing import Any, Unpack

from pydantic import SecretStr

from ...checkpoints.records import CheckpointInfo
from ...checkpoints.store import State, StoreOperations
from ...config import Keywords, MySQLConfig
from ...database.database import Database, share
from ...database.methods import awaited, blocking
from ...database.stores import AsyncStore, SyncStore
from ...engine.operation import Operation


class BackendOperations(StoreOperations):
    """The backend's operations: those of the store, with one current state for each thread id.

    Args:
        config: The options; ``keep_checkpoints`` is 1 here.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config.model_copy(update={"keep_checkpoints": 1}), "current")

    def load(self, thread_id: str) -> Operation[State | None]:  # type: ignore[override]  # there is one state only
        """The current state of a thread id; None if there is none."""
        return (yield from super().load(thread_id))

    def exists(self, thread_id: str) -> Operation[bool]:  # type: ignore[override]  # there is one state only
        """Whether a thread id has a state."""
        return (yield from super().exists(thread_id))

    def delete(self, thread_id: str) -> Operation[bool]:  # type: ignore[override]  # there is one state only
        """Delete the state of a thread id; True if there was one."""
        return (yield from super().delete(thread_id))

    def get_metadata(self, thread_id: str) -> Operation[CheckpointInfo | None]:  # type: ignore[override]  # as above
        """Checkpoint id, metadata and time of a thread id's state; None if there is none."""
        return (yield from super().get_metadata(thread_id))

    def list_threads(self, pattern: str = "*", limit: int = 100, offset: int = 0) -> Operation[list[str]]:  # type: ignore[override]  # the order of Locus' built-in backend
        """Ids that match a glob (``*`` and ``?``), most recently saved first."""
        return (yield from super().list_threads(limit, pattern, offset))

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]  # with states
        """Ids whose metadata holds ``key: value`` at the top level, each with its state as ``data``, newest first."""
        found = yield from self.checkpoints.states_by_metadata(self._tenant, key, value, limit)
        return [{**info, "data": state} for info, state in found]


class MySQLBackend(AsyncStore[BackendOperations]):
    """One current state for each thread id, as plain dicts, in MySQL: the interface of Locus' storage backends.

    It works under Locus' ``StorageBackendAdapter``, but for agents `MySQLCheckpointer` is the better choice.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(BackendOperations(config), database, owned=owned)

    save = awaited(BackendOperations.save)
    load = awaited(BackendOperations.load)
    exists = awaited(BackendOperations.exists)
    delete = awaited(BackendOperations.delete)
    list_threads = awaited(BackendOperations.list_threads)
    count = awaited(BackendOperations.count)
    copy_thread = awaited(BackendOperations.copy_thread)
    get_metadata = awaited(BackendOperations.get_metadata)
    query_by_metadata = awaited(BackendOperations.query_by_metadata)
    search = awaited(BackendOperations.search)
    search_data = awaited(BackendOperations.search_data)
    list_with_metadata = awaited(BackendOperations.list_with_metadata)
    vacuum = awaited(BackendOperations.vacuum)


class SyncMySQLBackend(SyncStore[BackendOperations]):
    """`MySQLBackend` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(BackendOperations(config), database, owned=owned)

    save = blocking(BackendOperations.save)
    load = blocking(BackendOperations.load)
    exists = blocking(BackendOperations.exists)
    delete = blocking(BackendOperations.delete)
    list_threads = blocking(BackendOperations.list_threads)
    count = blocking(BackendOperations.count)
    copy_thread = blocking(BackendOperations.copy_thread)
    get_metadata = blocking(BackendOperations.get_metadata)
    query_by_metadata = blocking(BackendOperations.query_by_metadata)
    search = blocking(BackendOperations.search)
    search_data = blocking(BackendOperations.search_data)
    list_with_metadata = blocking(BackendOperations.list_with_metadata)
    vacuum = blocking(BackendOperations.vacuum)
