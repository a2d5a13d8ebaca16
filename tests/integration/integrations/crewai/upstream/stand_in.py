"""A pytest plugin: gives CrewAI's tests our persistence and our storage instead of its own.

It is loaded with ``-p`` into the processes that run them. `LOCUS_UPSTREAM_OPTIONS` has the server, the schema and the
driver. Each file or folder of a test is a tenant.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from types import ModuleType
from typing import Any

import crewai.flow.persistence
import crewai.flow.persistence.sqlite
import pytest
from left_out import reason

from locus_mysql import Database
from locus_mysql.integrations.crewai import CrewFlowPersistence, CrewMemoryStorage

DATABASE = Database(**{**json.loads(os.environ["LOCUS_UPSTREAM_OPTIONS"]), "pool_size": 4})

_process = os.urandom(8).hex()


def _tenant(path: object) -> str:
    """Return the tenant of a path of this run."""
    return hashlib.sha256(f"{_process}/{path}".encode()).hexdigest()[:32]


class Persistence(CrewFlowPersistence):
    """Our persistence, with the constructor of the one in a file."""

    def __init__(self, db_path: str | None = None, /, **_: Any) -> None:
        super().__init__(DATABASE, tenant=_tenant(db_path))


class Storage(CrewMemoryStorage):
    """Our storage, with the constructor of the one in a folder."""

    def __init__(self, path: object = None, vector_dim: int | None = None, **_: Any) -> None:
        super().__init__(DATABASE, tenant=_tenant(path), dims=vector_dim or 1_536)


crewai.flow.persistence.SQLiteFlowPersistence = Persistence  # type: ignore[attr-defined, misc]
crewai.flow.persistence.sqlite.SQLiteFlowPersistence = Persistence  # type: ignore[misc]
module = ModuleType("crewai.memory.storage.lancedb_storage")
module.LanceDBStorage = Storage  # type: ignore[attr-defined]
sys.modules[module.__name__] = module


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the left-out tests."""
    left_out = [item for item in items if reason(item.nodeid)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not reason(item.nodeid)]
