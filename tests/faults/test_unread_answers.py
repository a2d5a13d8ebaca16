"""Connections that break while the server carries out a packet, so that it fails to send the answers.

After the first such failure, ROW_COUNT() is -1 in the next statement of the packet. Each call is repeated,
and must return and store the same as without the break.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeAlias

import pymysql
import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore, SyncMemoryStore, SyncMySQLCheckpointSaver
from locus_mysql.engine.operation import fetch
from locus_mysql.families.checkpoints.statements.tables import table_names
from locus_mysql.families.graphs.operations import GraphOperations
from locus_mysql.families.graphs.records import LoadedWrite, NewGraphCheckpoint, NewValue
from locus_mysql.families.graphs.statements import tables
from locus_mysql.families.graphs.statements.tables import table_names as graph_tables
from locus_mysql.families.graphs.values import EncodedValue
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey, Write
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.integrations.memu import MemuDatabase
from locus_mysql.memory import Put
from locus_mysql.records.ledger import FIND
from locus_mysql.working import SyncWorkingMemory

from ..integration.conftest import MakeConfig
from ..integration.connecting import connect
from ..integration.proxy import WireProxy
from ..waiting import until
from .test_every_fault import connected

pytestmark = pytest.mark.slow

TENANT = "default"
LONG = "word " * 1_000
ADA = ("users", "ada")
USER = {"user_id": "ada"}
TRANSCRIPT = TranscriptKey("kind", "collection", "name")


class Stores:
    """Stores of every family.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self._closing: list[Callable[[], object]] = []
        self.made: Any = None

    def close(self) -> None:
        """Close the stores that were used."""
        for close in self._closing:
            close()

    def _opened(self, store: Any) -> Any:
        self._closing.append(store.close)
        return store

    @cached_property
    def checkpoints(self) -> SyncCheckpointStore:
        """The store of checkpoints."""
        return self._opened(SyncCheckpointStore(self._config))

    @cached_property
    def saver(self) -> SyncMySQLCheckpointSaver:
        """The saver of graphs' checkpoints."""
        return self._opened(SyncMySQLCheckpointSaver(self._config))

    @cached_property
    def memories(self) -> SyncMemoryStore:
        """Long-term memory."""
        return self._opened(SyncMemoryStore(self._config, dims=2))

    @cached_property
    def working(self) -> SyncWorkingMemory:
        """Working memory of one session."""
        storage = MySQLStorage(self._config)
        self._closing.append(storage.close)
        return SyncWorkingMemory("session", storage)

    @cached_property
    def transcripts(self) -> SyncTranscriptStore:
        """The store of transcripts."""
        return self._opened(SyncTranscriptStore(self._config))

    @cached_property
    def memu(self) -> MemuDatabase:
        """The database of memU."""
        return self._opened(MemuDatabase(self._config))


Do: TypeAlias = Callable[[Stores], Any]


def said(words: str) -> dict[str, Any]:
    return {"said": [words, LONG]}


def no_threads(stores: Stores) -> None:
    for thread_id in ("thread", "copy"):
        stores.checkpoints.delete(thread_id)


def three_saved(stores: Stores) -> None:
    no_threads(stores)
    for number in range(3):
        stores.checkpoints.save("thread", said(f"turn {number}"), f"c{number}")


def checkpoints_left(stores: Stores) -> Any:
    return {
        thread_id: [
            (name, stores.checkpoints.load(thread_id, name)) for name in stores.checkpoints.list_checkpoints(thread_id)
        ]
        for thread_id in sorted(stores.checkpoints.list_threads())
    }


def no_graphs(stores: Stores) -> None:
    for thread_id in ("thread", "copy"):
        stores.saver.delete_thread(thread_id)


def put(stores: Stores, checkpoint_id: str, parent_id: str | None = None) -> None:
    stores.saver.put(
        thread_id="thread",
        checkpoint_id=checkpoint_id,
        checkpoint_data=said(checkpoint_id),
        parent_checkpoint_id=parent_id,
    )


def three_put(stores: Stores) -> None:
    no_graphs(stores)
    put(stores, "c0")
    put(stores, "c1", "c0")
    put(stores, "c2", "c1")


def put_of_a_run(stores: Stores, token: bytes | None = None) -> None:
    """Save or replace a checkpoint as LangGraph's saver does, in a process that has not used the thread before."""
    graphs = GraphOperations(stores.saver._operations.config)
    values = [NewValue("said", 1, EncodedValue("json", f'["{LONG}"]'.encode()))]
    new = NewGraphCheckpoint(
        codec="json",
        ns="default",
        checkpoint_id="c0",
        parent_id=None,
        head=EncodedValue("json", b""),
        values=lambda base: values,
        metadata=None,
        run_id="run",
        needs=0,
        replace=True,
        token=token or os.urandom(16),
    )
    stores.saver._run(graphs.saving.save(TENANT, "thread", new, None))


def run_put(stores: Stores) -> None:
    no_graphs(stores)
    put_of_a_run(stores)


def run_replaced(stores: Stores) -> int:
    """Replace a checkpoint; return the number of ledger records that detect a repetition of that save."""
    token = os.urandom(16)
    put_of_a_run(stores, token)
    find = FIND(stores.saver._operations.graphs.sql, tenant=TENANT, token=token)
    return len(stores.saver._run(fetch(find)))


def put_writes(stores: Stores, value: str = "new", *, replace: bool = True) -> None:
    rows = [LoadedWrite("task", idx, "channel", "", EncodedValue("json", f'"{value}"'.encode())) for idx in range(2)]
    saving = stores.saver._operations.graphs.saving
    checkpoint_key = tables.checkpoint_key("default", "c2")
    stores.saver._run(saving.put_writes(TENANT, "thread", checkpoint_key, "task", rows, replace=replace))


def writes_put(stores: Stores) -> None:
    three_put(stores)
    put_writes(stores, "old")


def writes_left(stores: Stores) -> Any:
    loading = stores.saver._operations.graphs.loading
    return stores.saver._run(loading.writes(TENANT, "thread", tables.checkpoint_key("default", "c2"), None))


def graphs_left(stores: Stores) -> Any:
    return {
        thread_id: [
            (one["checkpoint_id"], one["checkpoint"]) for one in stores.saver.list_checkpoints(thread_id=thread_id)
        ]
        for thread_id in sorted(stores.saver.list_threads())
    }


def delete_run(stores: Stores) -> Any:
    return stores.saver._run(stores.saver._operations.graphs.removing.delete_runs(TENANT, ["run"]))


def three_items(stores: Stores) -> None:
    stores.memories.clear_namespace(ADA)
    stores.memories.put_batch([Put(ADA, str(number), number, embedding=[number, 1]) for number in range(3)])


def items_left(stores: Stores) -> Any:
    return [(key, stores.memories.get(ADA, key)) for key in sorted(stores.memories.list_keys(ADA))]


def expired_items(stores: Stores) -> None:
    three_items(stores)
    stores.memories.put_batch([Put(ADA, f"old {number}", number, ttl_s=0.000001) for number in range(2)])


def session_filled(stores: Stores) -> None:
    stores.working.end()
    stores.working.set_many({"a": 1, "b": 2})
    stores.working.append_scratchpad("note")
    stores.made = stores.working.create_checkpoint("kept")


def session_left(stores: Stores) -> Any:
    kept = [one.label for one in stores.working.list_checkpoints()]
    return stores.working.get_all(), stores.working.get_scratchpad(), kept


def some_added(stores: Stores) -> None:
    stores.transcripts.delete(TRANSCRIPT, parts=True)
    stores.transcripts.append(TRANSCRIPT, [NewItem(number, str(number)) for number in range(3)])
    stores.transcripts.append(TRANSCRIPT._replace(part="part"), [NewItem(1)])


def transcripts_left(stores: Stores) -> Any:
    found = stores.transcripts.list_transcripts("kind", parts=True)
    return [(one.key, [item.content for item in stores.transcripts.read(one.key).items]) for one in found]


def some_remembered(stores: Stores) -> None:
    items = stores.memu.memory_item_repo
    items.clear_items()
    stores.made = [
        items.create_item(memory_type="profile", summary=f"item {number}", embedding=[1.0, 0.0], user_data=USER)
        for number in range(3)
    ]


def remembered(stores: Stores) -> Any:
    return sorted(one.summary for one in stores.memu.memory_item_repo.list_items().values())


#: By name: the preparation, the call, and the function that reads the stored state after it.
CALLS: dict[str, tuple[Do, Do, Do]] = {
    "checkpoints: save over": (
        three_saved,
        lambda stores: stores.checkpoints.save("thread", said("other"), "c1"),
        checkpoints_left,
    ),
    "checkpoints: delete": (three_saved, lambda stores: stores.checkpoints.delete("thread"), checkpoints_left),
    "checkpoints: delete one": (
        three_saved,
        lambda stores: stores.checkpoints.delete("thread", "c1"),
        checkpoints_left,
    ),
    "checkpoints: copy": (
        three_saved,
        lambda stores: stores.checkpoints.copy_thread("thread", "copy"),
        checkpoints_left,
    ),
    "checkpoints: vacuum": (three_saved, lambda stores: stores.checkpoints.vacuum(0), checkpoints_left),
    "checkpoints: forget_tenant": (three_saved, lambda stores: stores.checkpoints.forget_tenant(), checkpoints_left),
    "graphs: put": (three_put, lambda stores: put(stores, "c3", "c2"), graphs_left),
    "graphs: put_writes": (writes_put, put_writes, writes_left),
    "graphs: put_writes once": (writes_put, lambda stores: put_writes(stores, replace=False), writes_left),
    "graphs: replace": (run_put, run_replaced, graphs_left),
    "graphs: delete": (three_put, lambda stores: stores.saver.delete_thread("thread"), graphs_left),
    "graphs: delete one": (
        three_put,
        lambda stores: stores.saver.delete_checkpoint(thread_id="thread", checkpoint_id="c1"),
        graphs_left,
    ),
    "graphs: prune": (three_put, lambda stores: stores.saver.prune(thread_id="thread"), graphs_left),
    "graphs: delete_runs": (run_put, delete_run, graphs_left),
    "graphs: copy": (three_put, lambda stores: stores.saver.copy_thread("thread", "copy"), graphs_left),
    "graphs: vacuum": (three_put, lambda stores: stores.saver.vacuum(0), graphs_left),
    "memories: put": (three_items, lambda stores: stores.memories.put(ADA, "0", "new", if_version=1), items_left),
    "memories: write_batch": (
        three_items,
        lambda stores: stores.memories.write_batch([Put(ADA, "new", 1)], [(ADA, "0"), (ADA, "1"), (ADA, "none")]),
        items_left,
    ),
    "memories: delete": (three_items, lambda stores: stores.memories.delete(ADA, "0"), items_left),
    "memories: clear_namespace": (three_items, lambda stores: stores.memories.clear_namespace(ADA), items_left),
    "memories: sweep": (expired_items, lambda stores: stores.memories.sweep(), items_left),
    "working: delete_many": (
        session_filled,
        lambda stores: stores.working.delete_many(["a", "b", "none"]),
        session_left,
    ),
    "working: clear": (session_filled, lambda stores: stores.working.clear(), session_left),
    "working: increment": (session_filled, lambda stores: stores.working.increment("a", 3), session_left),
    "working: compare_and_set": (
        session_filled,
        lambda stores: stores.working.compare_and_set("a", 1, 5),
        session_left,
    ),
    "working: clear_scratchpad": (session_filled, lambda stores: stores.working.clear_scratchpad(), session_left),
    "working: delete_checkpoint": (
        session_filled,
        lambda stores: stores.working.delete_checkpoint(stores.made),
        session_left,
    ),
    "working: end": (session_filled, lambda stores: stores.working.end(), session_left),
    "transcripts: append": (
        some_added,
        lambda stores: stores.transcripts.append(TRANSCRIPT, [NewItem(5, "5")]).added,
        transcripts_left,
    ),
    "transcripts: remove": (
        some_added,
        lambda stores: [one.added for one in stores.transcripts.write([Write(TRANSCRIPT, remove=[1])])],
        transcripts_left,
    ),
    "transcripts: pop": (some_added, lambda stores: stores.transcripts.pop(TRANSCRIPT).content, transcripts_left),
    "transcripts: clear": (some_added, lambda stores: stores.transcripts.clear(TRANSCRIPT), transcripts_left),
    "transcripts: delete": (some_added, lambda stores: stores.transcripts.delete(TRANSCRIPT), transcripts_left),
    "transcripts: delete with parts": (
        some_added,
        lambda stores: stores.transcripts.delete(TRANSCRIPT, parts=True),
        transcripts_left,
    ),
    "transcripts: forget_tenant": (some_added, lambda stores: stores.transcripts.forget_tenant(), transcripts_left),
    "memu: update_item": (
        some_remembered,
        lambda stores: stores.memu.memory_item_repo.update_item(item_id=stores.made[0].id, summary="new").summary,
        remembered,
    ),
    "memu: clear_items": (some_remembered, lambda stores: len(stores.memu.memory_item_repo.clear_items()), remembered),
}


@pytest.fixture
def stores(through_proxy: MakeConfig) -> Iterator[Stores]:
    """Yield stores whose server is behind the proxy."""
    opened = Stores(through_proxy(driver="pymysql"))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_whose_connection_breaks_while_a_packet_runs_returns_what_it_did(
    stores: Stores, proxy: WireProxy, name: str
) -> None:
    prepare, call, left = CALLS[name]
    prepare(stores)
    with proxy.counting() as undisturbed:
        expected = call(stores)
    after = left(stores)
    for packet in range(1, undisturbed.commands + 1):
        prepare(stores)
        proxy.drop_while_running(packet)
        assert call(stores) == expected, packet
        assert left(stores) == after, packet


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_whose_connection_breaks_while_its_packet_waits_for_a_lock_returns_what_it_did(
    stores: Stores, make_config: MakeConfig, server_dsn: str, database: str, proxy: WireProxy, name: str
) -> None:
    """The waiting statement can send its answer, so the batch gets further than in the test above."""
    prepare, call, left = CALLS[name]
    prepare(stores)
    expected, after = call(stores), left(stores)
    prepare(stores)
    with connect(make_config(), database) as blocker, connected(server_dsn) as observer, ThreadPoolExecutor() as pool:
        lock_every_row(blocker, database)
        calling = pool.submit(call, stores)
        await until(lambda: waiting(observer, database) == 1, "the call waits")
        proxy.drop_all()
        await until(lambda: waiting(observer, database) == 2, "the call is repeated, and waits too")
        blocker.rollback()
        assert calling.result() == expected
    assert left(stores) == after


async def test_a_copy_whose_connection_breaks_before_it_creates_the_thread_can_be_loaded(
    stores: Stores, make_config: MakeConfig, server_dsn: str, database: str, proxy: WireProxy
) -> None:
    three_saved(stores)
    stores.checkpoints.save("copy", said("what has expired"))
    threads = table_names("locus_", "dicts")["threads"]
    with connect(make_config(), database) as blocker, connected(server_dsn) as observer:
        with blocker.cursor() as cursor:
            cursor.execute(f"UPDATE {threads} SET expires_at = '2000-01-01' WHERE thread_id = 'copy'")
        add_gate(blocker, f"BEFORE DELETE ON {threads} FOR EACH ROW UPDATE gate SET passed = passed + 1")
        breaking = broken_at_gate(
            lambda: stores.checkpoints.copy_thread("thread", "copy"), blocker, observer, database, proxy
        )
        assert await breaking is True
    copied = checkpoints_left(stores)
    assert copied["copy"] == copied["thread"]


async def test_a_replacing_save_whose_connection_breaks_before_it_is_recorded_is_recorded(
    stores: Stores, make_config: MakeConfig, server_dsn: str, database: str, proxy: WireProxy
) -> None:
    run_put(stores)
    threads = graph_tables("locus_")["threads"]
    with connect(make_config(), database) as blocker, connected(server_dsn) as observer:
        takes_number = "IF NEW.last_seq <> OLD.last_seq THEN UPDATE gate SET passed = passed + 1; END IF"
        add_gate(blocker, f"BEFORE UPDATE ON {threads} FOR EACH ROW {takes_number}")
        assert await broken_at_gate(lambda: run_replaced(stores), blocker, observer, database, proxy) == 1


def add_gate(connection: pymysql.Connection[Any], trigger: str) -> None:
    """Create a table with one row, and a trigger that updates it: while the row is locked, the call waits."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE gate (passed INT NOT NULL)")
        cursor.execute("INSERT INTO gate VALUES (0)")
        cursor.execute(f"CREATE TRIGGER at_gate {trigger}")


async def broken_at_gate(
    call: Callable[[], Any],
    blocker: pymysql.Connection[Any],
    observer: pymysql.Connection[Any],
    database: str,
    proxy: WireProxy,
) -> Any:
    """Return the result of a call whose connection breaks while it waits at the gate.

    The server sends the waiting statement's answer to the broken connection. The next answer is the first that
    it fails to send.
    """
    with ThreadPoolExecutor() as pool, blocker.cursor() as cursor:
        blocker.begin()
        cursor.execute("SELECT 1 FROM gate FOR UPDATE")
        calling = pool.submit(call)
        await until(lambda: waiting(observer, database) == 1, "the call waits")
        proxy.drop_all()
        await until(lambda: waiting(observer, database) == 2, "the call is repeated, and waits too")
        blocker.rollback()
        return calling.result()


def lock_every_row(connection: pymysql.Connection[Any], database: str) -> None:
    """Lock the rows of every table, but no gaps between them."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (database,))
        tables = [table for (table,) in cursor.fetchall()]
        connection.begin()
        for table in tables:
            cursor.execute(f"SELECT 1 FROM `{database}`.`{table}` FOR UPDATE")


def waiting(connection: pymysql.Connection[Any], database: str) -> int:
    """Return the number of transactions that wait for a row lock in the schema."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(DISTINCT w.requesting_engine_transaction_id) FROM performance_schema.data_lock_waits w"
            " JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id"
            " WHERE l.object_schema = %s",
            (database,),
        )
        ((count,),) = cursor.fetchall()
        return int(count)
