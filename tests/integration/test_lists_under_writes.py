"""What is listed page by page while others delete, save and insert: what nobody touches is listed exactly once."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.engine.operation import Operation
from locus_mysql.integrations.langgraph import MySQLSaver

from .conftest import ONE_OF_EACH, MakeConfig, OpenStore
from .langgraph.conftest import OpenSaver, open_saver  # noqa: F401 - a fixture
from .langgraph.test_contract import checkpoint

pytestmark = pytest.mark.slow

THREADS = 250

one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


class Others:
    """Other processes: each time they are asked, they delete some threads, save to some, and make some.

    Args:
        save: Saves to a thread, which it makes if there is none.
        delete: Deletes a thread.
        at_once: How many threads are deleted each time; half as many are saved to and made.
    """

    def __init__(self, save: Callable[[str], object], delete: Callable[[str], object], at_once: int = 12) -> None:
        self.names = [f"thread {number:03}" for number in range(THREADS)]
        self._save = save
        self._delete = delete
        self._at_once = at_once
        # Both of the threads that a listing has come by and of those that it has yet to come by.
        self._doomed = self.names[3::5] + self.names[3::5][::-1]
        self._busy = self.names[4::5]
        self._new = 0
        self.times = 0

    def act(self) -> None:
        self.times += 1
        for _ in range(self._at_once):
            if self._doomed:
                self._delete(self._doomed.pop(0 if self._new % 2 else -1))
        for _ in range(self._at_once // 2):
            self._busy.append(self._busy.pop(0))
            self._save(self._busy[-1])
            self._save(f"new {self._new}")
            self._new += 1

    @property
    def untouched(self) -> list[str]:
        """The threads that are left alone."""
        touched = {*self.names[3::5], *self.names[4::5]}
        return [name for name in self.names if name not in touched]

    def assert_each_once(self, listed: Iterable[str]) -> None:
        """What was left alone was listed, and only once."""
        assert self.times >= 2, "it took one page"
        counts = Counter(listed)
        assert {name: counts[name] for name in self.untouched} == dict.fromkeys(self.untouched, 1)


def disturbed(operation: Operation[Any], others: Others) -> Operation[Any]:
    """An operation, before each further round trip of which others act."""
    answer: Any = None
    first = True
    while True:
        try:
            batch = operation.send(answer)
        except StopIteration as done:
            return done.value
        if not first:
            others.act()
        first = False
        answer = yield batch


def others_with_a_saver(config: MySQLConfig, **options: Any) -> Others:
    """Others that use LangGraph's saver."""
    saver = MySQLSaver(config)

    def save(thread_id: str) -> None:
        place: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        saver.put(place, checkpoint({"a": 1}), {"step": 1}, {"a": 1})

    others = Others(save, saver.delete_thread, **options)
    for name in others.names:
        save(name)
    return others


@pytest.mark.parametrize("side", [*ONE_OF_EACH, "mysql-connector-sync", "aiomysql-async"])
@pytest.mark.parametrize("saved_lately", [True, False], ids=["lately", "long-ago"])
async def test_a_graph_s_threads(
    open_saver: OpenSaver,  # noqa: F811 - a fixture
    make_config: MakeConfig,
    run_sql: Callable[..., Any],
    database: str,
    side: str,
    saved_lately: bool,
) -> None:
    others = others_with_a_saver(make_config(driver="pymysql"))
    if not saved_lately:  # the order is that of the rows, not that of the checkpoints of the last minute
        for table, column in (("version_threads", "updated_at"), ("versions", "created_at")):
            run_sql(f"UPDATE {database}.locus_{table} SET {column} = {column} - INTERVAL 1 DAY")
    saver = open_saver(side)
    listed: list[str] = []
    async for found in saver.alist(None):
        listed.append(found.config["configurable"]["thread_id"])
        if len(listed) % 20 == 0:
            others.act()
    others.assert_each_once(listed)


def others_with_a_store(config: MySQLConfig, metadata: Callable[[str], Any] = lambda _: None) -> Others:
    """Others that use a store of plain dicts."""
    store = SyncCheckpointStore(config)
    others = Others(
        lambda thread_id: store.save(thread_id, {"kind": "talk"}, metadata=metadata(thread_id)), store.delete
    )
    for name in others.names:
        store.save(name, {"kind": "talk"}, metadata=metadata(name))
    return others


def disturb(store: Any, method: str, others: Others) -> None:
    """Have others act between the round trips of an operation of a store."""
    operations = store.store._operations.checkpoints
    original = getattr(operations, method)
    setattr(operations, method, lambda *args: disturbed(original(*args), others))


@one_of_each
async def test_a_search_in_the_newest_states(open_store: OpenStore, make_config: MakeConfig, side: str) -> None:
    others = others_with_a_store(make_config(driver="pymysql"))
    store = open_store(side)
    disturb(store, "search_data", others)
    found = await store.search_data("kind", "talk", THREADS * 2)
    others.assert_each_once(one["thread_id"] for one in found)


async def test_a_thread_without_a_checkpoint_does_not_end_a_search_in_states(
    open_store: OpenStore, make_config: MakeConfig, run_sql: Callable[..., Any], database: str
) -> None:
    others = others_with_a_store(make_config(driver="pymysql"))
    run_sql(f"DELETE FROM {database}.locus_store_checkpoints WHERE thread_id = %s", others.names[-2])
    found = await open_store().search_data("kind", "talk", THREADS * 2)
    assert {one["thread_id"] for one in found} == {*others.names} - {others.names[-2]}


@one_of_each
@pytest.mark.parametrize("method", ["query_by_metadata", "states_by_metadata"])
async def test_checkpoints_found_by_metadata(
    open_store: OpenStore, make_config: MakeConfig, side: str, method: str
) -> None:
    # Metadata of so many names has one key for all of them: it may hold any pair, and is looked at.
    names = {f"name {number}": number for number in range(1_001)}

    def metadata(thread_id: str) -> dict[str, Any]:
        return {**names, "wanted": "new" not in thread_id and int(thread_id[-3:]) % 3 == 0}

    others = others_with_a_store(make_config(driver="pymysql"), metadata)
    wanted = [name for name in others.untouched if int(name[-3:]) % 3 == 0]
    store = open_store(side).store
    finding = getattr(store._operations.checkpoints, method)("default", "wanted", True, len(wanted) * 2)
    found = store._run(disturbed(finding, others))
    found = await found if inspect.isawaitable(found) else found
    infos = [one[0] if isinstance(one, tuple) else one for one in found]
    counts = Counter(info["thread_id"] for info in infos)
    assert others.times >= 1
    assert {name: counts[name] for name in wanted} == dict.fromkeys(wanted, 1)
