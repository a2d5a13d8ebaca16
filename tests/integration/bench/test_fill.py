"""Checkpoints that the benchmarks copy on the server, to fill large tables, equal those that the package writes."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from bench import fill
from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.runtime.arguments import encode_metadata

from ..conftest import MakeConfig
from ..soundness import assert_sound

CHECKPOINTS = 600
COPY, ORIGINAL = "copy-2/thread-7", "thread-7"


@pytest.fixture
def filled(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    monkeypatch.setattr(fill, "CONVERSATIONS", 10)
    config = make_config()
    fill.fill(config, dsn_of(config), CHECKPOINTS)
    return config


@pytest.fixture
def store(filled: MySQLConfig) -> Iterator[SyncCheckpointStore]:
    with SyncCheckpointStore(filled) as one:
        yield one


def dsn_of(config: MySQLConfig) -> str:
    return f"mysql://{config.user}:{config.password.get_secret_value()}@{config.host}:{config.port}/{config.database}"


def test_there_are_as_many_as_asked_for(store: SyncCheckpointStore) -> None:
    usage = store.get_disk_usage()
    assert usage["checkpoints"] == CHECKPOINTS + fill.RARE_CHECKPOINTS
    assert store.count() == CHECKPOINTS / fill.CHECKPOINTS_PER_THREAD + fill.RARE_CHECKPOINTS


def test_a_copy_loads_and_goes_on(store: SyncCheckpointStore) -> None:
    state = store.load(COPY)
    assert state is not None
    assert state == store.load(ORIGINAL)
    state["messages"].append("one more")
    store.save(COPY, state)
    assert store.load(COPY) == state
    assert len(store.history(COPY)) == fill.CHECKPOINTS_PER_THREAD + 1


def test_a_copy_is_found_by_its_own_metadata(store: SyncCheckpointStore) -> None:
    info = store.get_metadata(COPY)
    assert info is not None
    (found,) = store.query_by_metadata("ticket", info["metadata"]["ticket"])
    assert found["thread_id"] == COPY
    assert len(store.query_by_metadata("channel", "mail", 1_000)) == CHECKPOINTS / 2
    assert len(store.query_by_metadata(*fill.RARE_PAIR)) == fill.RARE_CHECKPOINTS


def test_the_metadata_of_a_copy_is_encoded_as_the_package_does(filled: MySQLConfig, server: pymysql.Connection) -> None:
    with SyncCheckpointStore(filled) as store, server.cursor() as cursor:
        info = store.get_metadata(COPY)
        assert info is not None
        cursor.execute(
            f"SELECT metadata, metadata_keys FROM {filled.database}.locus_store_checkpoints WHERE checkpoint_id = %s"
            " AND thread_id = %s",
            (info["checkpoint_id"], COPY),
        )
        assert cursor.fetchall() == (encode_metadata(info["metadata"]),)


def test_a_copy_is_found_by_its_words(store: SyncCheckpointStore) -> None:
    state = store.load(ORIGINAL)
    assert state is not None
    word = max(state["messages"][0].split(), key=len)
    threads = {hit["thread_id"] for hit in store.search(word, 1_000)}
    assert {ORIGINAL, COPY} <= threads
    assert len(store.search(fill.RARE_WORD, 100)) == fill.RARE_CHECKPOINTS


def test_copies_leave_the_tables_sound(filled: MySQLConfig, server: pymysql.Connection) -> None:
    server.select_db(filled.database)
    assert_sound(server, "locus_store_")


def test_old_threads_are_what_vacuum_removes(filled: MySQLConfig, store: SyncCheckpointStore) -> None:
    due = fill.add_old_threads(filled, dsn_of(filled), 7)
    assert due == 7 * fill.CHECKPOINTS_PER_THREAD
    before = store.count()
    assert store.vacuum(fill.DAYS_OLD / 2) == due
    assert store.count() == before - 7
