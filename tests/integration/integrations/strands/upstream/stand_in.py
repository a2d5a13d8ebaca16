"""A pytest plugin: gives the framework's tests our storage and our repository instead of its own.

It is loaded with ``-p`` into the processes that run them. `LOCUS_UPSTREAM_OPTIONS` has the server, the schema and the
driver. Where a test creates its own storage, it gets a tenant.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import pytest
import strands.session.file_session_manager
import strands.session.snapshot_session_manager
import strands.storage
import strands.storage.in_memory_storage
import strands.storage.local_file_storage
import strands.vended_memory_stores.file_memory_store.store
from left_out import reason
from strands.session.repository_session_manager import RepositorySessionManager

from locus_mysql import Database
from locus_mysql.errors import ConfigError
from locus_mysql.integrations.strands import StrandsSessionRepository, StrandsStorage
from locus_mysql.runtime.database import Database as AnyDatabase

OPTIONS = {**json.loads(os.environ["LOCUS_UPSTREAM_OPTIONS"]), "pool_size": 4}
DATABASE = Database(**OPTIONS)


def _blocking_database() -> AnyDatabase:
    """Return a database for repositories: asyncmy has no blocking side."""
    try:
        StrandsSessionRepository(DATABASE)
    except ConfigError:
        return Database(**{**OPTIONS, "driver": "pymysql"})
    return DATABASE


BLOCKING = _blocking_database()


_process = os.urandom(8).hex()


def _tenant(folder: str | None) -> str:
    """Return the tenant of a folder of this run."""
    return hashlib.sha256(f"{_process}/{os.path.abspath(folder or '')}".encode()).hexdigest()[:32]  # noqa: PTH100 - may be ""


class InMemoryStorage(StrandsStorage):
    """Our storage, with the constructor of the one in memory: each has its own tenant."""

    def __init__(self, *, search_strategy: Any = None) -> None:
        super().__init__(DATABASE, search_strategy=search_strategy, tenant=os.urandom(16).hex())


class LocalFileStorage(StrandsStorage):
    """Our storage, with the constructor of the one in files: each folder is a tenant."""

    def __init__(self, base_dir: str = "./.strands/", *, sandbox: Any = None, search_strategy: Any = None) -> None:
        super().__init__(DATABASE, search_strategy=search_strategy, tenant=_tenant(base_dir))
        self.base_dir = os.path.normpath(base_dir)


class Mocked(StrandsSessionRepository):
    """Our repository, with the constructor of the mocked one."""

    def __init__(self) -> None:
        super().__init__(BLOCKING, tenant=os.urandom(16).hex())


class FileManager(RepositorySessionManager):
    """A session manager with our repository, made as the one that keeps files: each folder is a tenant."""

    def __init__(self, session_id: str, storage_dir: str | None = None, **_: Any) -> None:
        repository = StrandsSessionRepository(BLOCKING, tenant=_tenant(storage_dir))
        super().__init__(session_id=session_id, session_repository=repository)

    def __getattr__(self, name: str) -> Any:
        """Return a method of the repository: the manager that keeps files is one itself."""
        return getattr(self.session_repository, name)


for module, name, stand_in in (
    (strands.storage, "InMemoryStorage", InMemoryStorage),
    (strands.storage.in_memory_storage, "InMemoryStorage", InMemoryStorage),
    (strands.storage, "LocalFileStorage", LocalFileStorage),
    (strands.storage.local_file_storage, "LocalFileStorage", LocalFileStorage),
    (strands.session.snapshot_session_manager, "LocalFileStorage", LocalFileStorage),
    (strands.vended_memory_stores.file_memory_store.store, "LocalFileStorage", LocalFileStorage),
    (strands.session.file_session_manager, "FileSessionManager", FileManager),
):
    setattr(module, name, stand_in)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the left-out tests."""
    left_out = [item for item in items if reason(item.nodeid)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not reason(item.nodeid)]


def pytest_collectstart(collector: Any) -> None:
    """Replace the mocked repository before the module that imports it is."""
    import tests.fixtures.mock_session_repository as mocked

    mocked.MockedSessionRepository = Mocked  # type: ignore[attr-defined]
