"""Sessions on each asynchronous driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.integrations.openai_agents import OpenAIBranchingSession, OpenAISession

from ..conftest import Opened

MakeSession = Callable[..., OpenAISession]
MakeBranching = Callable[..., OpenAIBranchingSession]


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send nothing to OpenAI."""
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


@pytest.fixture
def make_session(opened: Opened, driver: str) -> MakeSession:
    """Return ``make_session(session_id, **options)``."""

    def make(session_id: str = "customer-7", **options: Any) -> Any:
        return opened(OpenAISession, session_id, driver=driver, **options)

    return make


@pytest.fixture
def make_branching(opened: Opened, driver: str) -> MakeBranching:
    """Return ``make_branching(**options)``: a session with branches."""

    def make(**options: Any) -> Any:
        return opened(OpenAIBranchingSession, "customer-7", driver=driver, **options)

    return make
