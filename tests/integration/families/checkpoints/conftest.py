"""Stores of both sides with one interface, raw access to their tables, and a check of the tables after every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pymysql
import pytest

from locus_mysql import (
    CheckpointStore,
    MySQLBackend,
    SyncCheckpointStore,
    SyncMySQLBackend,
)

from ...conftest import Opening
from ...soundness import assert_all_sound

Make: TypeAlias = Callable[..., Any]
RunSQL: TypeAlias = Callable[..., Any]


@pytest.fixture
def make_store(opening: Opening, side: str) -> Make:
    """Return ``make_store(**options)``: another store on the test's schema, like that of another process."""
    return partial(opening, side, (CheckpointStore, SyncCheckpointStore))


@pytest.fixture
def make_backend(opening: Opening, side: str) -> Make:
    """Return ``make_backend(**options)``: a backend on the test's schema."""
    return partial(opening, side, (MySQLBackend, SyncMySQLBackend))


@pytest.fixture
def store(make_store: Make) -> Any:
    return make_store()


@pytest.fixture
def backend(make_backend: Make) -> Any:
    return make_backend()


@pytest.fixture(autouse=True)
def sound_tables(raw: pymysql.Connection[Any]) -> Iterator[None]:
    """Check after each test that the tables are sound."""
    yield
    assert_all_sound(raw)


@pytest.fixture
def age(sql: RunSQL) -> Callable[..., None]:
    """Return ``age(days, thread_id, checkpoint_id=None)``: ages a thread, or its rows up to a checkpoint."""

    def older(days: float, thread_id: str, checkpoint_id: str | None = None) -> None:
        seconds = int(days * 86_400)
        if checkpoint_id is None:
            sql(
                "UPDATE locus_store_threads SET created_at = created_at - INTERVAL %s SECOND,"
                " updated_at = updated_at - INTERVAL %s SECOND WHERE thread_id = %s",
                seconds,
                seconds,
                thread_id,
            )
            sql(
                "UPDATE locus_store_checkpoints SET created_at = created_at - INTERVAL %s SECOND WHERE thread_id = %s",
                seconds,
                thread_id,
            )
            return
        ((seq,),) = sql(
            "SELECT seq FROM locus_store_checkpoints WHERE thread_id = %s AND checkpoint_id = %s",
            thread_id,
            checkpoint_id,
        )
        sql(
            "UPDATE locus_store_threads SET created_at = LEAST(created_at, UTC_TIMESTAMP(6) - INTERVAL %s SECOND)"
            " WHERE thread_id = %s",
            seconds,
            thread_id,
        )
        sql(
            "UPDATE locus_store_checkpoints SET created_at = created_at - INTERVAL %s SECOND"
            " WHERE thread_id = %s AND seq <= %s",
            seconds,
            thread_id,
            seq,
        )

    return older


@pytest.fixture
def expire(sql: RunSQL) -> Callable[[str], None]:
    """Return ``expire(thread_id)``, which makes a thread expire immediately."""

    def run_out(thread_id: str) -> None:
        sql(
            "UPDATE locus_store_threads SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE thread_id = %s",
            thread_id,
        )

    return run_out
