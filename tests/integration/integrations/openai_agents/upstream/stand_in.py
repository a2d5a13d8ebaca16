"""A pytest plugin: gives the SDK's tests our session instead of its SQLite and SQLAlchemy sessions.

It is loaded with ``-p`` into the processes that run them. `LOCUS_UPSTREAM_OPTIONS` has the server, the schema and the
driver. Where a test creates its own database, it gets a tenant.
"""

from __future__ import annotations

import json
import os
from typing import Any

import agents
import agents.extensions.memory
import agents.extensions.memory.advanced_sqlite_session
import agents.extensions.memory.sqlalchemy_session
import agents.memory
import pytest
from left_out import reason

from locus_mysql import Database
from locus_mysql.integrations.openai_agents import OpenAIBranchingSession, OpenAISession

DATABASE = Database(**json.loads(os.environ["LOCUS_UPSTREAM_OPTIONS"]), pool_size=4)

#: Each test, or each session, has its own in-memory database; here it has its own tenant.
_process = os.urandom(8).hex()
_test = ""


def tenant_of(db_path: Any) -> str:
    """Return the tenant that stands for a database."""
    return os.urandom(16).hex() if str(db_path) == ":memory:" else f"{_process}/{db_path}"[-120:]


class StandIn(OpenAISession):
    """Our session, with the constructor of the SDK's."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", *, session_settings: Any = None) -> None:
        super().__init__(session_id, DATABASE, tenant=tenant_of(db_path), session_settings=session_settings)

    @classmethod
    def from_url(cls, session_id: str, *, url: str, session_settings: Any = None, **_: Any) -> StandIn:
        """Create a session as SQLAlchemySession does. A test's sessions with the same URL share a database."""
        where = ":memory:" if ":memory:" in url else url
        return cls(session_id, where, session_settings=session_settings)

    def close(self) -> None:  # type: ignore[override]
        """Do nothing: the connections belong to the database."""


class BranchingStandIn(OpenAIBranchingSession):
    """Our session with branches, with the constructor of the SDK's."""

    def __init__(
        self, *, session_id: str, db_path: Any = ":memory:", create_tables: bool = False, session_settings: Any = None
    ) -> None:
        super().__init__(session_id, DATABASE, tenant=tenant_of(db_path), session_settings=session_settings)

    @property
    def _current_branch_id(self) -> str:
        return self.current_branch

    def close(self) -> None:  # type: ignore[override]
        """Do nothing: the connections belong to the database."""


agents.SQLiteSession = agents.memory.SQLiteSession = StandIn  # type: ignore[misc, assignment]
sqlalchemy_session: Any = agents.extensions.memory.sqlalchemy_session
sqlalchemy_session.SQLAlchemySession = StandIn
advanced_session: Any = agents.extensions.memory.advanced_sqlite_session
advanced_session.AdvancedSQLiteSession = BranchingStandIn


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the left-out tests."""
    left_out = [item for item in items if reason(item.nodeid)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not reason(item.nodeid)]
