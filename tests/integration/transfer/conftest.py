"""Fixtures and functions shared by the tests of transfer."""

from __future__ import annotations

from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..commands import dsn_of
from ..conftest import MakeConfig
from ..families.working.conftest import redis_server

__all__ = ["redis_server"]


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    """Return the configuration of the test's schema, which commands read from the environment."""
    config = make_config()
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    return config


def conversation(turns: int, word: str = "Answer") -> list[AgentState]:
    """Return the state after each turn."""
    state = AgentState(confidence=0.5, confidence_history=(0.25, 0.5)).with_message(Message.system("Be brief."))
    states = []
    for turn in range(turns):
        state = state.with_messages([Message.user(f"Question {turn}?"), Message.assistant(f"{word} {turn} ✓")])
        states.append(state)
    return states


async def save_all(checkpointer: Any, thread_id: str, states: list[AgentState], prefix: str = "cp") -> None:
    """Save each state under a separate id, with metadata."""
    for index, state in enumerate(states):
        await checkpointer.save(state, thread_id, f"{prefix}-{index}", {"place": index, "tag": {"a": [1, None]}})


async def contents(checkpointer: Any, thread_id: str) -> list[tuple[str, AgentState]]:
    """Return a thread's checkpoints, oldest first."""
    ids = (await checkpointer.list_checkpoints(thread_id, limit=10_000))[::-1]
    return [(one, await checkpointer.load(thread_id, one)) for one in ids]


async def kept(config: MySQLConfig, thread_id: str) -> list[tuple[Any, ...]]:
    """Return ids, parents, times and metadata of a thread in our tables, oldest first."""
    async with MySQLCheckpointer(config) as checkpointer:
        history = await checkpointer.history(thread_id, 10_000)
    return [(one["checkpoint_id"], one["parent_id"], one["created_at"], one["metadata"]) for one in reversed(history)]
