"""Results with NULLs, missing columns or wrong types raise only this package's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import (
    MySQLConfig,
    SyncCheckpointStore,
    SyncMySQLCheckpointSaver,
    SyncWorkingMemory,
)
from locus_mysql.errors import LocusMySQLError
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.integrations.langgraph import MySQLSaver, MySQLStore
from locus_mysql.integrations.memu import MemuDatabase
from locus_mysql.memory import HashingEmbedder

from ..integration.conftest import MakeConfig
from ..integration.drivers_under_test import SYNC_DRIVERS
from ..integration.integrations.memu.conftest import UserModel
from ..integration.proxy import WireProxy
from ..unit.drivers.wire.answers import BIGINT, BINARY, TEXT, Rows, encoded

pytestmark = pytest.mark.slow

Reads = dict[str, Callable[[], Any]]


def shapes() -> Iterator[bytes]:
    """Answers with one result: NULLs, numbers, texts and bytes in different numbers of columns."""
    for width in (*range(1, 9), 11, 12, 15, 16, 18, 24):
        yield encoded([Rows([TEXT] * width, [[None] * width])])
    for width in (1, 3, 5, 15, 18):
        yield encoded([Rows([BIGINT] * width, [[b"0"] * width])])
        yield encoded([Rows([TEXT] * width, [[b"x"] * width])])
        yield encoded([Rows([BINARY] * width, [[b"x"] * width] * 2)])


def checkpoints(config: MySQLConfig) -> Reads:
    store = SyncCheckpointStore(config)
    cold = SyncCheckpointStore(config.model_copy(update={"cache_bytes": 0}))
    for turns in (1, 2):
        store.save("t", {"m": ["x" * 3_000] * turns}, f"{turns}")
    return {
        "load": lambda: store.load("t"),
        "load without a cache": lambda: cold.load("t"),
        "load by id": lambda: store.load("t", "1"),
        "history": lambda: store.history("t"),
        "search": lambda: store.search("x"),
        "search_data": lambda: store.search_data("a", 1),
        "query_by_metadata": lambda: store.query_by_metadata("a", 1),
        "list_with_metadata": lambda: store.list_with_metadata(),
        "get_metadata": lambda: store.get_metadata("t"),
        "list_checkpoints": lambda: store.list_checkpoints("t"),
        "list_threads": lambda: store.list_threads(),
        "exists": lambda: store.exists("t"),
    }


def graphs(config: MySQLConfig) -> Reads:
    plain = SyncMySQLCheckpointSaver(config)
    plain.put(thread_id="t", checkpoint_id="1", checkpoint_data={"a": "x" * 500})
    plain.put_writes(thread_id="t", checkpoint_id="1", task_id="task", writes=[("a", 1)])
    saver = MySQLSaver(config.model_copy(update={"table_prefix": "graph_"}))
    index: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    checkpoint: Any = {"v": 4, "id": "1", "ts": "x", "channel_values": {"a": 1}, "channel_versions": {"a": 1}}
    stored = saver.put(index, {**checkpoint, "versions_seen": {}}, {}, {"a": 1})
    return {
        "get": lambda: plain.get(thread_id="t"),
        "list_checkpoints": lambda: plain.list_checkpoints(thread_id="t"),
        "get_writes": lambda: plain.get_writes(thread_id="t", checkpoint_id="1"),
        "list_threads": lambda: plain.list_threads(),
        "count": lambda: plain.count(),
        "get_tuple": lambda: saver.get_tuple(index),
        "list": lambda: list(saver.list(index)),
        "get_delta_channel_history": lambda: saver.get_delta_channel_history(config=stored, channels=["a"]),
    }


def memories(config: MySQLConfig) -> Reads:
    store = MySQLStore(config, index={"dims": 16, "embed": HashingEmbedder(16), "fields": ["text"]})
    store.put(("a",), "k", {"text": "tea"})
    return {
        "get": lambda: store.get(("a",), "k"),
        "search by meaning": lambda: store.search(("a",), query="tea"),
        "search": lambda: store.search(("a",)),
        "list_namespaces": lambda: store.list_namespaces(),
    }


def working(config: MySQLConfig) -> Reads:
    memory = SyncWorkingMemory("s", config)
    memory.set("k", 1)
    memory.create_checkpoint()
    return {
        "get": lambda: memory.get("k"),
        "get_all": lambda: memory.get_all(),
        "list_keys": lambda: memory.list_keys(),
        "stats": lambda: memory.stats(),
        "list_checkpoints": lambda: memory.list_checkpoints(),
        "get_task_state": lambda: memory.get_task_state(),
        "get_scratchpad": lambda: memory.get_scratchpad(),
        "ttl": lambda: memory.ttl("k"),
    }


def memu(config: MySQLConfig) -> Reads:
    database = MemuDatabase(config, user_model=UserModel)
    ada = {"user_id": "ada"}
    items = database.memory_item_repo
    item = items.create_item(memory_type="profile", summary="tea", embedding=[1.0, 0.0], user_data=ada)
    return {
        "list_items": lambda: items.list_items(where=ada),
        "vector_search_items": lambda: items.vector_search_items([1.0, 0.0], 5, where=ada),
        "get_item": lambda: items.get_item(item.id),
        "list_categories": lambda: database.memory_category_repo.list_categories(where=ada),
    }


def transcripts(config: MySQLConfig) -> Reads:
    store = SyncTranscriptStore(config)
    key = TranscriptKey("kind", "collection", "name")
    store.append(key, [NewItem({"a": "x" * 500}, "id"), NewItem(1)], header=Header({"s": 1}, "tag"))
    return {
        "get": lambda: store.get(key),
        "read": lambda: store.read(key),
        "read the last": lambda: store.read(key, last=1),
        "open": lambda: store.open(key),
        "find": lambda: store.find(key, "id"),
        "holding": lambda: store.holding("kind", "id"),
        "list_transcripts": lambda: store.list_transcripts("kind", "collection", states=True),
        "recent": lambda: store.recent("kind", "collection"),
        "count": lambda: store.count(),
    }


@pytest.mark.parametrize("driver", SYNC_DRIVERS)
@pytest.mark.parametrize("family", [checkpoints, graphs, memories, working, transcripts, memu])
def test_unexpected_rows_raise_only_errors_of_this_package(
    make_config: MakeConfig, proxy: WireProxy, family: Callable[[MySQLConfig], Reads], driver: str
) -> None:
    config = make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", retry_deadline_s=0, driver=driver)
    reads = family(config)
    refused = dict.fromkeys(reads, 0)
    for name, read in reads.items():
        right = read()
        for answer in shapes():
            proxy.answer_instead(answer)
            try:
                read()
            except LocusMySQLError:
                refused[name] += 1
            again = read()
            assert again == right or name == "get_delta_channel_history", name
    assert sum(refused.values()) > 0, "some have no use for rows, or leave out what is damaged; but not all"
