"""Lists that are read page by page during other writes contain every untouched entry exactly once."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from locus_mysql import (
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
)
from locus_mysql.engine.operation import Operation
from locus_mysql.families.memories import reading
from locus_mysql.families.memories.statements.filters import compile_filter
from locus_mysql.families.memories.statements.tables import Range
from locus_mysql.integrations.langgraph import MySQLSaver, copy_checkpoints
from locus_mysql.integrations.memu import MemuDatabase, copy_database
from locus_mysql.memory import Put

from .conftest import ONE_OF_EACH, MakeConfig, OpenStore
from .integrations.langgraph.conftest import OpenSaver, open_saver  # noqa: F401 - a fixture
from .integrations.langgraph.test_contract import checkpoint
from .integrations.memu.conftest import UserModel
from .other_writers import Others

pytestmark = pytest.mark.slow

THREADS = 250

one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


class Writer(Others):
    """Other processes.

    Args:
        save: Saves to a thread, which it creates if necessary.
        delete: Deletes a thread.
        threads: The number of threads at first.
    """

    def __init__(self, save: Callable[[str], object], delete: Callable[[str], object], threads: int = THREADS) -> None:
        super().__init__(threads, at_once=12)
        self._save_to, self._remove = save, delete
        for name in self.names:
            save(name)

    def act(self) -> None:
        for name in self.delete():
            self._remove(name)
        for name in self.save():
            self._save_to(name)


def disturbed(operation: Operation[Any], writer: Writer) -> Operation[Any]:
    """Run an operation; other processes write before each of its round trips except the first."""
    answer: Any = None
    first = True
    while True:
        try:
            batch = operation.send(answer)
        except StopIteration as done:
            return done.value
        if not first:
            writer.act()
        first = False
        answer = yield batch


def writer_with_a_saver(config: MySQLConfig, **options: Any) -> Writer:
    """Return other processes that use LangGraph's saver."""
    saver = MySQLSaver(config)

    def save(thread_id: str) -> None:
        config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        saver.put(config, checkpoint({"a": 1}), {"step": 1}, {"a": 1})

    return Writer(save, saver.delete_thread, **options)


@one_of_each
@pytest.mark.parametrize("saved_lately", [True, False], ids=["lately", "long-ago"])
async def test_a_graph_s_threads_are_listed_once_under_deletes(
    open_saver: OpenSaver,  # noqa: F811 - a fixture
    make_config: MakeConfig,
    run_sql: Callable[..., Any],
    database: str,
    side: str,
    saved_lately: bool,
) -> None:
    writer = writer_with_a_saver(make_config(driver="pymysql"))
    if not saved_lately:  # then rows determine the order, not the checkpoints of the last minute
        for table, column in (("graph_threads", "updated_at"), ("graph_checkpoints", "created_at")):
            run_sql(f"UPDATE {database}.locus_{table} SET {column} = {column} - INTERVAL 1 DAY")
    saver = open_saver(side)
    listed: list[str] = []
    async for found in saver.alist(None):
        listed.append(found.config["configurable"]["thread_id"])
        if len(listed) % 20 == 0:
            writer.act()
    writer.assert_each_once(listed)


def writer_with_a_store(config: MySQLConfig, metadata: Callable[[str], Any] = lambda _: None) -> Writer:
    """Return other processes that use a store of dicts."""
    store = SyncCheckpointStore(config)
    return Writer(lambda thread_id: store.save(thread_id, {"kind": "talk"}, metadata=metadata(thread_id)), store.delete)


def disturb(store: Any, method: str, writer: Writer) -> None:
    """Let other processes write between the round trips of an operation of a store."""
    operations = store.store._operations.checkpoints.queries
    original = getattr(operations, method)
    setattr(operations, method, lambda *args: disturbed(original(*args), writer))


@one_of_each
async def test_a_search_in_the_newest_states_lists_each_once_under_deletes(
    open_store: OpenStore, make_config: MakeConfig, side: str
) -> None:
    writer = writer_with_a_store(make_config(driver="pymysql"))
    store = open_store(side)
    disturb(store, "search_data", writer)
    found = await store.search_data("kind", "talk", THREADS * 2)
    writer.assert_each_once(one["thread_id"] for one in found)


async def test_a_thread_without_a_checkpoint_does_not_end_a_search_in_states(
    open_store: OpenStore, make_config: MakeConfig, run_sql: Callable[..., Any], database: str
) -> None:
    writer = writer_with_a_store(make_config(driver="pymysql"))
    run_sql(f"DELETE FROM {database}.locus_store_checkpoints WHERE thread_id = %s", writer.names[-2])
    found = await open_store().search_data("kind", "talk", THREADS * 2)
    assert {one["thread_id"] for one in found} == {*writer.names} - {writer.names[-2]}


@one_of_each
@pytest.mark.parametrize("method", ["query_by_metadata", "states_by_metadata"])
async def test_checkpoints_found_by_metadata_are_listed_once_under_deletes(
    open_store: OpenStore, make_config: MakeConfig, side: str, method: str
) -> None:
    # Metadata with very many names has one search key for all of them: any pair may match it, and is compared.
    names = {f"name {number}": number for number in range(1_001)}

    def metadata(thread_id: str) -> dict[str, Any]:
        return {**names, "wanted": "new" not in thread_id and int(thread_id[-3:]) % 3 == 0}

    writer = writer_with_a_store(make_config(driver="pymysql"), metadata)
    wanted = [name for name in writer.untouched if int(name[-3:]) % 3 == 0]
    store = open_store(side).store
    finding = getattr(store._operations.checkpoints.queries, method)("default", "wanted", True, len(wanted) * 2)
    found = store._run(disturbed(finding, writer))
    found = await found if inspect.isawaitable(found) else found
    infos = [one[0] if isinstance(one, tuple) else one for one in found]
    counts = Counter(info["thread_id"] for info in infos)
    assert writer.turns >= 1
    assert {name: counts[name] for name in wanted} == dict.fromkeys(wanted, 1)


@pytest.mark.parametrize("driver", ["pymysql", "mysql-connector"])
@pytest.mark.parametrize("query", [None, "tea", 'tea "in the morning"'])
def test_memories_found_by_a_number_beyond_64_bits_are_listed_once_under_deletes(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, driver: str, query: str | None
) -> None:
    wanted, equal_to_the_server = 2**70 + 1, 2**70  # so the process checks item by item, and reads by key
    monkeypatch.setattr(reading, "PAGE_SIZE", 40)
    with SyncMemoryStore(make_config(driver=driver)) as store:

        def save(name: str) -> None:
            more = " in the morning" if name.endswith(("1", "5", "6")) else ""
            store.put(("one",), name, {"n": wanted, "text": f"green tea{more}"})

        writer = Writer(save, partial(store.delete, ("one",)))
        never = {"n": equal_to_the_server, "text": "tea in the morning"}
        store.put_batch([Put(("one",), f"other {number}", never) for number in range(60)])
        operations, where = store._operations.reading, Range(b"one\0")
        filter = compile_filter({"n": wanted}, "i.value")
        listing = (
            operations.newest("default", where, filter, 1_000, 0)
            if query is None
            else operations.words("default", where, filter, query, 1_000, 0)
        )
        listed = store._run_step(disturbed(listing, writer))
    writer.assert_each_once((hit.item.key for hit in listed), turns=2 if query is None else 1)  # hits are read at once
    assert {hit.item.value["n"] for hit in listed} == {wanted}


# Reads of a copy


class Acting(InMemorySaver):
    """A target. Each write to it also changes the source."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._others = writer
        self._puts = 0
        self.quiet = False

    def put(self, *args: Any) -> Any:
        self._puts += 1
        if self._puts % 25 == 0 and not self.quiet:
            self._others.act()
        return super().put(*args)


def test_a_copy_of_checkpoints_reports_what_changed(make_config: MakeConfig) -> None:
    writer = writer_with_a_saver(make_config(driver="pymysql"), threads=100)
    with MySQLSaver(make_config(driver="pymysql")) as source:
        target = Acting(writer)
        reported: list[str] = []
        summary = copy_checkpoints(source, target, notify=reported.append)
        there = {found.config["configurable"]["thread_id"] for found in target.list(None)}
        assert not {*writer.untouched} - there
        assert not summary.complete
        assert summary.changed
        assert len(reported) == summary.changed
        assert not [name for name in writer.untouched if any(repr(name) in message for message in reported)]
        assert "changed in the source meanwhile" in str(summary)
        target.quiet = True
        again = copy_checkpoints(source, target)
        assert again.complete, again
        assert not {found.config["configurable"]["thread_id"] for found in source.list(None)} - {
            found.config["configurable"]["thread_id"] for found in target.list(None)
        }


def test_a_copy_of_memu_s_records_reports_what_changed(make_config: MakeConfig) -> None:
    source = MemuDatabase(make_config(driver="pymysql"), user_model=UserModel)
    target = MemuDatabase(make_config(driver="pymysql", table_prefix="other_"), user_model=UserModel)
    user = {"user_id": "ada"}

    def remember(name: str) -> None:
        source.memory_item_repo.create_item(
            resource_id=None, memory_type="profile", summary=name, embedding=[1.0, 0.0], user_data=user
        )

    for number in range(30):
        remember(f"item {number}")
    restore = target.restore

    def restoring(**records: Any) -> Any:
        remember("meanwhile")
        return restore(**records)

    target.restore = restoring  # type: ignore[method-assign]
    assert copy_database(source, target).changed == 1
    target.restore = restore  # type: ignore[method-assign]
    assert copy_database(source, target).changed == 0
    assert len(target.memory_item_repo.list_items()) == 31
    source.close()
    target.close()
