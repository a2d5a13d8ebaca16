"""Random concurrent operations of two stores, with some answers lost, compared with a plain dict."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pymysql
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.errors import ThreadExists
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.queries import text_of_dict
from locus_mysql.families.checkpoints.records import EncodedCheckpoint, NewCheckpoint

from .connecting import connect
from .proxy import WireProxy
from .soundness import assert_sound
from .together import going_together

State = dict[str, Any]

THREADS = st.sampled_from(["t", "T", "t "])
NAMES = st.sampled_from(["a", "A", "b", "c", "c "])
STORES = st.sampled_from([0, 1])

#: Calls that two Python threads make concurrently on one thread of the store.
RIVALS = st.sampled_from(["save", "save under a name", "delete one", "delete all", "copy here"])
#: Whether the two calls wait for a connection first.
FULL_POOL = st.booleans()

#: The number of checkpoints that the pruning store keeps.
KEPT = 2

#: A word and the number of characters of padding. Long items lead to states that are stored as deltas.
ITEMS = st.tuples(st.sampled_from(["apple", "plum", "pear", "fig"]), st.sampled_from([1, 300, 900]))

TABLES = "locus_store_threads", "locus_store_checkpoints", "locus_store_ledger"


@dataclass
class Checkpoint:
    """A checkpoint of the model."""

    name: str
    state: State
    kind: str
    provisional: bool = False


@dataclass
class Model:
    """The expected contents of the stores: each thread's checkpoints, oldest first, and the threads by time."""

    threads: dict[str, list[Checkpoint]] = field(default_factory=dict)
    recent: list[str] = field(default_factory=list)

    def newest(self, thread_id: str) -> State:
        checkpoints = self.threads.get(thread_id)
        return copy.deepcopy(checkpoints[-1].state) if checkpoints else {}

    def save(self, thread_id: str, checkpoint: Checkpoint) -> None:
        others = [one for one in self.threads.get(thread_id, []) if one.name != checkpoint.name]
        self.threads[thread_id] = [*others, checkpoint]
        self.touch(thread_id)

    def prune(self, thread_id: str, keep: int) -> None:
        """Keep only the newest of the lasting checkpoints."""
        there = self.threads[thread_id]
        kept = [one.name for one in there if not one.provisional][-keep:]
        self.threads[thread_id] = [one for one in there if one.provisional or one.name in kept]

    def copy(self, source: str, destination: str) -> bool | str:
        """Return whether the source exists; "exists" if the destination exists too."""
        if source not in self.threads:
            return False
        if destination in self.threads:
            return "exists"
        self.threads[destination] = copy.deepcopy(self.threads[source])
        self.touch(destination)
        return True

    def touch(self, thread_id: str) -> None:
        self.recent = [thread_id, *(one for one in self.recent if one != thread_id)]

    def delete(self, thread_id: str, name: str | None = None) -> bool:
        before = self.threads.get(thread_id, [])
        after = [] if name is None else [one for one in before if one.name != name]
        if after:
            self.threads[thread_id] = after
        else:
            self.threads.pop(thread_id, None)
            self.recent = [one for one in self.recent if one != thread_id]
        return len(after) < len(before)


@dataclass
class Rival:
    """One of two concurrent calls.

    Args:
        act: Makes the call, and returns the store's result.
        explain: Applies the call to a model, given the store's result; returns the expected result.
    """

    act: Callable[[], Any]
    explain: Callable[[Model, Any], Any]


class Stores(RuleBasedStateMachine):
    """Two stores with separate caches, like two processes, on the same tables."""

    connection: ClassVar[pymysql.Connection[Any]]
    stores: ClassVar[tuple[SyncCheckpointStore, SyncCheckpointStore]]
    pruning: ClassVar[SyncCheckpointStore]
    proxy: ClassVar[WireProxy]

    @initialize()
    def begin(self) -> None:
        self.model = Model()
        self.saves = 0
        self.seen: dict[tuple[int, str], State] = {}
        for table in TABLES:
            self._sql(f"DELETE FROM {table}")
        for store in (*self.stores, self.pruning):
            self._forget(store)

    # Writing

    @rule(store=STORES, thread_id=THREADS, items=st.lists(ITEMS, min_size=1, max_size=4))
    def go_on(self, store: int, thread_id: str, items: list[tuple[str, int]]) -> None:
        """Append to a thread's newest state, as a turn does."""
        state = self.model.newest(thread_id)
        state["messages"] = [*state.get("messages", []), *self._messages(items)]
        state["turn"] = self.saves
        self._save(store, thread_id, None, state)

    @rule(store=STORES, thread_id=THREADS, items=st.lists(ITEMS, min_size=1, max_size=2))
    def go_on_from_what_it_last_saw(self, store: int, thread_id: str, items: list[tuple[str, int]]) -> None:
        """Save like an agent that keeps its state while other processes delete, replace or restart the thread."""
        state = copy.deepcopy(self.seen.get((store, thread_id), {}))
        state["messages"] = [*state.get("messages", []), *self._messages(items)]
        self._save(store, thread_id, None, state)

    @rule(first=STORES, thread_id=THREADS, saves=st.integers(1, 3), size=st.sampled_from([300, 900]))
    def begin_anew_behind_its_back(self, first: int, thread_id: str, saves: int, size: int) -> None:
        """One store saves, the other deletes the thread and saves equally often, and the first one continues."""
        for store in (first, 1 - first):
            self.delete_thread(store, thread_id)
            state: State = {"messages": self._messages([("fig", size)] * 6)}
            for _ in range(saves):
                state = {"messages": [*state["messages"], *self._messages([("plum", size)])]}
                self._save(store, thread_id, None, state)
        self.go_on_from_what_it_last_saw(first, thread_id, [("pear", size)])
        self.read_newest(first, thread_id)

    @rule(store=STORES, thread_id=THREADS, name=NAMES, items=st.lists(ITEMS, max_size=3))
    def save_under_a_name(self, store: int, thread_id: str, name: str, items: list[tuple[str, int]]) -> None:
        state = self.model.newest(thread_id)
        state["messages"] = [*state.get("messages", []), *self._messages(items)]
        state["steps"] = [item[0] for item in items]
        self._save(store, thread_id, name, state)

    @rule(store=STORES, thread_id=THREADS, index=st.integers(0, 30), data=st.data())
    def edit_history(self, store: int, thread_id: str, index: int, data: st.DataObject) -> None:
        """Change, remove or insert a message in the middle of the conversation."""
        state = self.model.newest(thread_id)
        messages = list(state.get("messages", []))
        index = min(index, len(messages))
        replacement = self._messages(data.draw(st.lists(ITEMS, max_size=2)))
        state["messages"] = messages[:index] + replacement + messages[index + 1 :]
        self._save(store, thread_id, None, state)

    @rule(store=STORES, thread_id=THREADS, items=st.lists(ITEMS, min_size=1, max_size=2))
    def keep_a_window(self, store: int, thread_id: str, items: list[tuple[str, int]]) -> None:
        """Drop the oldest messages, as an agent that keeps the newest ones; the others are stored as copies."""
        state = self.model.newest(thread_id)
        messages = state.get("messages", [])
        if len(messages) < 8:
            messages = self._messages([("plum", 900)] * 8)
        state["messages"] = [*messages[len(items) :], *self._messages(items)]
        self._save(store, thread_id, None, state)

    @rule(store=STORES, thread_id=THREADS)
    def begin_anew(self, store: int, thread_id: str) -> None:
        self._save(store, thread_id, None, {"fresh": True, "messages": []})

    @rule(store=STORES, thread_id=THREADS, which=st.integers(0, 20), items=st.lists(ITEMS, min_size=1, max_size=2))
    def branch(self, store: int, thread_id: str, which: int, items: list[tuple[str, int]]) -> None:
        """Load an earlier checkpoint and continue from it."""
        checkpoints = self.model.threads.get(thread_id, [])
        if not checkpoints:
            return
        chosen = checkpoints[which % len(checkpoints)]
        state = self.stores[store].load(thread_id, chosen.name)
        assert state == chosen.state
        state["messages"] = [*state.get("messages", []), *self._messages(items)]
        self._save(store, thread_id, None, state)

    @rule(
        store=STORES,
        finisher=STORES,
        thread_id=THREADS,
        iterations=st.lists(st.lists(ITEMS, min_size=1, max_size=2), min_size=1, max_size=4),
        crash=st.booleans(),
    )
    def run_a_turn(
        self, store: int, finisher: int, thread_id: str, iterations: list[list[tuple[str, int]]], crash: bool
    ) -> None:
        """Save like an agent: after each iteration and at the end of the turn; then delete the iterations' saves."""
        names = []
        state = self.stores[store].load(thread_id) or {}
        for items in iterations:
            state = {**state, "messages": [*state.get("messages", []), *self._messages(items)]}
            names.append(self._name())
            self._save(store, thread_id, names[-1], state, provisional=True)
        if crash:
            state = self.stores[finisher].load(thread_id) or {}
        self._save(finisher if crash else store, thread_id, None, {**state, "done": self.saves})
        for name in names:
            self._delete(finisher, thread_id, name)

    @rule(thread_id=THREADS, items=st.lists(ITEMS, min_size=1, max_size=2))
    def save_where_few_are_kept(self, thread_id: str, items: list[tuple[str, int]]) -> None:
        state = self.model.newest(thread_id)
        state["messages"] = [*state.get("messages", []), *self._messages(items)]
        checkpoint = Checkpoint(self._name(), state, "even")
        assert self.pruning.save(thread_id, state, checkpoint.name, {"kind": "even"}) == checkpoint.name
        self.saves += 1
        self.model.save(thread_id, copy.deepcopy(checkpoint))
        self.model.prune(thread_id, KEPT)

    # Removing

    @rule(store=STORES, thread_id=THREADS, which=st.integers(0, 20))
    def delete_one(self, store: int, thread_id: str, which: int) -> None:
        checkpoints = self.model.threads.get(thread_id, [])
        name = checkpoints[which % len(checkpoints)].name if checkpoints else "nothing"
        self._delete(store, thread_id, name)

    @rule(store=STORES, thread_id=THREADS)
    def delete_thread(self, store: int, thread_id: str) -> None:
        assert self.stores[store].delete(thread_id) is self.model.delete(thread_id)

    @rule(store=STORES, source=THREADS, destination=THREADS)
    def copy(self, store: int, source: str, destination: str) -> None:
        if source != destination:
            assert _copied(self.stores[store], source, destination) == self.model.copy(source, destination)

    @rule(thread_id=THREADS)
    def expire(self, thread_id: str) -> None:
        self._sql(
            "UPDATE locus_store_threads SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE thread_id = %s",
            thread_id,
        )
        self.model.delete(thread_id)

    @rule(store=STORES, thread_id=THREADS, keep=st.integers(0, 4))
    def vacuum(self, store: int, thread_id: str, keep: int) -> None:
        """Make all but a thread's newest few checkpoints old, and clean up."""
        checkpoints = self.model.threads.get(thread_id, [])
        old, kept = checkpoints[: len(checkpoints) - keep], checkpoints[len(checkpoints) - keep :] if keep else []
        self._sql(
            "UPDATE locus_store_threads SET created_at = created_at - INTERVAL 90 DAY WHERE thread_id = %s", thread_id
        )
        for checkpoint in old:
            self._sql(
                "UPDATE locus_store_checkpoints SET created_at = created_at - INTERVAL 90 DAY"
                " WHERE thread_id = %s AND checkpoint_id = %s",
                thread_id,
                checkpoint.name,
            )
        for gone in old if kept else old[:-1]:
            self.model.delete(thread_id, gone.name)
        self.stores[store].vacuum(30)
        for checkpoint in self.model.threads.get(thread_id, []):
            self._sql(
                "UPDATE locus_store_checkpoints SET created_at = UTC_TIMESTAMP(6)"
                " WHERE thread_id = %s AND checkpoint_id = %s",
                thread_id,
                checkpoint.name,
            )

    # Faults

    @rule(fault=st.sampled_from(["drop_before", "drop_after_send"]), command=st.integers(1, 3))
    def break_a_connection(self, fault: str, command: int) -> None:
        """Break a connection at one of the next commands, before the server receives it or before its answer."""
        getattr(self.proxy, fault)(command)

    @rule(one=RIVALS, other=RIVALS, stores=st.tuples(STORES, STORES), thread_id=THREADS, source=THREADS, full=FULL_POOL)
    def do_two_things_at_once(
        self, one: str, other: str, stores: tuple[int, int], thread_id: str, source: str, full: bool
    ) -> None:
        """Run two Python threads, with one store or two. The results must match one call after the other.

        With one store whose pool is full, both wait for a connection, and saves share a packet.
        """
        rivals = [self._rival(what, store, thread_id, source) for what, store in zip((one, other), stores, strict=True)]
        engine = self.stores[stores[0]].database.synchronous
        waiting = going_together(engine, 2) if full and stores[0] == stores[1] else nullcontext()
        with ThreadPoolExecutor(2) as threads, waiting:
            returned = list(threads.map(lambda rival: rival.act(), rivals))
        reader = self.stores[stores[0]]
        found = [(name, reader.load(thread_id, name)) for name in reversed(reader.list_checkpoints(thread_id, 1_000))]
        for order in ((0, 1), (1, 0)):
            model = copy.deepcopy(self.model)
            expected = {index: rivals[index].explain(model, returned[index]) for index in order}
            left = [(checkpoint.name, checkpoint.state) for checkpoint in model.threads.get(thread_id, [])]
            if left == found and all(expected[index] == returned[index] for index in order):
                self.model = model
                return
        raise AssertionError(f"{one} and {other} at once returned {returned}; there are {[name for name, _ in found]}")

    @rule(store=STORES)
    def restart(self, store: int) -> None:
        """Empty the caches of a store."""
        self._forget(self.stores[store])

    # Reading

    @rule(store=STORES, thread_id=THREADS)
    def read_newest(self, store: int, thread_id: str) -> None:
        checkpoints = self.model.threads.get(thread_id)
        loaded = self.stores[store].load(thread_id)
        assert loaded == (checkpoints[-1].state if checkpoints else None)
        self.seen[store, thread_id] = loaded or {}
        assert self.stores[store].exists(thread_id) is bool(checkpoints)

    @rule(store=STORES)
    def read_everything(self, store: int) -> None:
        reader = self.stores[store]
        assert reader.list_threads() == self.model.recent
        assert reader.count() == len(self.model.threads)
        for thread_id, checkpoints in self.model.threads.items():
            names = [one.name for one in reversed(checkpoints)]
            assert reader.list_checkpoints(thread_id, 1_000) == names
            history = reader.history(thread_id, 1_000)
            assert [entry["checkpoint_id"] for entry in history] == names
            for index, entry in enumerate(history):
                assert entry["parent_id"] is None or entry["parent_id"] in names[index + 1 :]
            for one in checkpoints:
                assert reader.load(thread_id, one.name) == one.state
                info = reader.get_metadata(thread_id, one.name)
                assert info is not None
                assert info["metadata"] == {"kind": one.kind}
        for kind in ("even", "odd"):
            found = {
                (info["thread_id"], info["checkpoint_id"]) for info in reader.query_by_metadata("kind", kind, 1_000)
            }
            assert found == {
                (thread_id, one.name)
                for thread_id, checkpoints in self.model.threads.items()
                for one in checkpoints
                if one.kind == kind
            }

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        for store in (0, 1):
            self.read_everything(store)
        self._check_search()
        assert_sound(self.connection, "locus_store_")

    # Details

    def _rival(self, what: str, number: int, thread_id: str, source: str) -> Rival:
        store = self.stores[number]
        if what == "delete one":
            checkpoints = self.model.threads.get(thread_id, [])
            name = checkpoints[-1].name if checkpoints else "nothing"
            return Rival(lambda: store.delete(thread_id, name), lambda model, _: model.delete(thread_id, name))
        if what == "delete all":
            return Rival(lambda: store.delete(thread_id), lambda model, _: model.delete(thread_id))
        if what == "copy here" and source != thread_id:
            return Rival(lambda: _copied(store, source, thread_id), lambda model, _: model.copy(source, thread_id))
        name = "a" if what == "save under a name" else None
        state = self.model.newest(thread_id)
        state["messages"] = [*state.get("messages", []), *self._messages([("fig", 300)])]
        self.saves += 1
        state["by"] = self.saves

        def explain(model: Model, returned: Any) -> Any:
            model.save(thread_id, Checkpoint(returned, copy.deepcopy(state), "odd"))
            return name or returned

        return Rival(lambda: store.save(thread_id, state, name, {"kind": "odd"}), explain)

    def _check_search(self) -> None:
        """Check that each hit contains the text, and that a text in any checkpoint is found in its thread."""
        for word in ("apple", "plum", "pear", "fig"):
            hits = self.stores[0].search(word, 1_000)
            holders = {
                (thread_id, one.name)
                for thread_id, checkpoints in self.model.threads.items()
                for one in checkpoints
                if word in str(one.state)
            }
            found = {(hit["thread_id"], hit["checkpoint_id"]) for hit in hits}
            assert found <= holders, (word, found - holders)
            assert {thread_id for thread_id, _ in found} == {thread_id for thread_id, _ in holders}, word

    def _save(self, store: int, thread_id: str, name: str | None, state: State, *, provisional: bool = False) -> None:
        kind = "even" if self.saves % 2 == 0 else "odd"
        before = copy.deepcopy(state)
        if provisional:
            new = NewCheckpoint(
                lambda _: EncodedCheckpoint(encode(state)),
                lambda delta: text_of_dict(state, delta),
                name,
                {"kind": kind},
                provisional=True,
            )
            operations = self.stores[store]._operations.checkpoints
            saved = self.stores[store]._run(operations.saving.save("default", thread_id, new))
        else:
            saved = self.stores[store].save(thread_id, state, name, {"kind": kind})
        assert saved == (name or saved)
        assert state == before
        self.saves += 1
        self.seen[store, thread_id] = before
        self.model.save(thread_id, Checkpoint(saved, copy.deepcopy(state), kind, provisional))

    def _delete(self, store: int, thread_id: str, name: str) -> None:
        assert self.stores[store].delete(thread_id, name) is self.model.delete(thread_id, name)

    def _forget(self, store: SyncCheckpointStore) -> None:
        """Empty the caches, as after a restart."""
        store._operations.checkpoints.context.cache.reset_in_child()

    def _name(self) -> str:
        return f"save-{self.saves}-{secrets.token_hex(3)}"

    def _messages(self, items: list[tuple[str, int]]) -> list[dict[str, Any]]:
        return [{"role": "user", "content": f"{word} {self.saves} " + "x" * size} for word, size in items]

    def _sql(self, text: str, *params: Any) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(text, params or None)


def _copied(store: SyncCheckpointStore, source: str, destination: str) -> bool | str:
    try:
        return store.copy_thread(source, destination)
    except ThreadExists:
        return "exists"


@pytest.mark.slow
def test_any_sequence_of_operations_from_two_stores_reads_as_a_dict_does(
    server_dsn: str, database: str, make_config: Any, proxy: WireProxy
) -> None:
    connection = connect(MySQLConfig(dsn=server_dsn), database)
    through = {"host": "127.0.0.1", "port": proxy.port, "ssl_mode": "DISABLED", "ttl_s": 3600}
    stores = (
        SyncCheckpointStore(make_config(driver="pymysql", **through)),
        SyncCheckpointStore(make_config(driver="mysql-connector", **through)),
    )
    pruning = SyncCheckpointStore(make_config(driver="pymysql", keep_checkpoints=KEPT, **through))
    for store in (*stores, pruning):
        store.health_check()  # after the first contact with the server, failed connecting is retried

    class Machine(Stores):
        """The machine for this test's schema."""

    Machine.connection, Machine.stores, Machine.pruning, Machine.proxy = connection, stores, pruning, proxy
    try:
        run_state_machine_as_test(Machine, settings=settings(settings.get_profile("server")))
    finally:
        for store in (*stores, pruning):
            store.close()
        connection.close()
