"""States of different kinds under one table prefix are never read, replaced or deleted as states of another kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import (
    MySQLConfig,
    SyncCheckpointStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointer,
)
from locus_mysql.errors import SchemaMismatch

RunSql: TypeAlias = Callable[..., tuple[Any, ...]]

STATE = AgentState(messages=(Message.user("hello"),))


def test_a_store_a_backend_and_a_checkpointer_share_a_prefix_and_no_thread(config: MySQLConfig) -> None:
    with (
        SyncMySQLCheckpointer(config) as checkpointer,
        SyncMySQLBackend(config) as backend,
        SyncCheckpointStore(config) as store,
    ):
        ids = [checkpointer.save(STATE, "t") for _ in range(3)]
        backend.save("t", {"a": 1})
        store.save("t", {"b": 1})
        assert checkpointer.list_checkpoints("t") == ids[::-1]
        assert (backend.load("t"), store.load("t")) == ({"a": 1}, {"b": 1})
        assert store.forget_tenant() == 1
        assert (checkpointer.load("t"), backend.load("t"), store.load("t")) == (STATE, {"a": 1}, None)


def test_tables_of_another_kind_are_refused_and_left_alone(config: MySQLConfig, run_sql: RunSql) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("t", {"a": 1})
    tables = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{config.database}' ORDER BY 1"
    before = run_sql(tables)
    with (
        SyncMySQLCheckpointer(config.model_copy(update={"table_prefix": "locus_store_"})) as checkpointer,
        pytest.raises(SchemaMismatch, match="another kind"),
    ):
        checkpointer.load("t")
    assert run_sql(tables) == before
