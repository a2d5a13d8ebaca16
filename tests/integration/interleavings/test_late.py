"""Late packets of every family's writes, which arrive after the call was repeated and other processes have written.

A connection breaks before a packet arrives; the call is repeated and ends; other processes write or delete. Then the
server receives the packet. It must change no table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import pymysql
import pytest

from locus_mysql import NO_CHECKPOINT
from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.engine.operation import Operation
from locus_mysql.errors import LocusMySQLError
from locus_mysql.families.checkpoints.leases import Lease, LeaseOperations
from locus_mysql.families.graphs import keys
from locus_mysql.families.graphs.operations import GraphOperations
from locus_mysql.families.graphs.records import LoadedWrite, NewValue, NewVersion
from locus_mysql.families.graphs.values import EncodedValue
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey, Write
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.mysql_calls import WorkingOperations
from locus_mysql.integrations.memu.categories import CategoryOperations
from locus_mysql.integrations.memu.items import ItemOperations
from locus_mysql.integrations.memu.operations import MemuStore
from locus_mysql.integrations.memu.records import DefaultUserModel
from locus_mysql.integrations.memu.relations import RelationOperations
from locus_mysql.integrations.memu.resources import ResourceOperations
from locus_mysql.memory import Put

from ..engines import ENGINE
from .stage import Call, Process, Stage

pytestmark = pytest.mark.slow

#: Begins the call whose packet is late.
Begin = Callable[["Side"], Call]
#: Writes of other processes in the meantime.
Meanwhile = Callable[["Side"], Any]
#: Prepares the stored data, and begins the call.
Case = tuple[Meanwhile | None, Begin]

TENANT = "default"
LONG = "word " * 3_000


class Side:
    """A process, with the operations of every family.

    Args:
        stage: The stage that controls its calls.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.store = stage.store()
        config: MySQLConfig = self.store.store.config
        self._config = config
        self.working = WorkingOperations(config)
        self.leases = LeaseOperations(CheckpointDialect(config.table_prefix, "dicts"))
        self.memu = MemuStore(config.model_copy(update={"table_prefix": "memu_"}), DefaultUserModel, 1_000_000)
        self.begin_anew()

    @cached_property
    def saver(self) -> Process:
        """Return the process that saves graphs."""
        return self.stage.store("saver")

    @cached_property
    def memories(self) -> Process:
        """Return the process that stores memories."""
        return self.stage.store("memories")

    @cached_property
    def transcripts(self) -> Process:
        """Return the process that stores conversations."""
        return self.stage.store("transcripts")

    def begin_anew(self) -> None:
        """Forget the created records."""
        self.made: Any = None
        self.versions = GraphOperations(self._config)

    def begin(self, operation: Operation[Any]) -> Call:
        """Begin an operation of any family."""
        host = self.store.store
        return self.stage.begin(getattr(operation, "__name__", "operation"), host._run, (operation,), {})

    def run(self, operation: Operation[Any]) -> Any:
        """Run an operation from beginning to end."""
        return self.begin(operation).finish()


# Checkpoints


def save(side: Side, words: str = "plum", checkpoint_id: str | None = "c1", **options: Any) -> Call:
    return side.store.begin("save", "thread", {"said": [words, LONG]}, checkpoint_id, **options)


def saved(side: Side) -> None:
    save(side).finish()


def saved_over(side: Side) -> None:
    save(side, "fig").finish()


def thread_saved_anew(side: Side) -> None:
    side.store.delete("thread")
    save(side, "fig").finish()


def all_deleted(side: Side) -> None:
    side.store.delete("thread")


CHECKPOINTS: dict[str, Case] = {
    "save anew": (None, save),
    "save over": (saved, lambda side: save(side, "nut")),
    "save behind": (saved, lambda side: save(side, "nut", "c2")),
    "save where none is expected": (None, lambda side: save(side, "nut", expected=NO_CHECKPOINT)),
    "save that is refused": (saved, lambda side: save(side, "nut", expected=NO_CHECKPOINT)),
    "delete": (saved, lambda side: side.store.begin("delete", "thread")),
    "delete of what is missing": (None, lambda side: side.store.begin("delete", "thread")),
    "delete one": (saved, lambda side: side.store.begin("delete", "thread", "c1")),
    "delete one that is missing": (None, lambda side: side.store.begin("delete", "thread", "c1")),
    "copy": (
        lambda side: side.store.save("source", {"said": []}, "s1"),
        lambda side: side.store.begin("copy_thread", "source", "thread"),
    ),
    "copy that is refused": (
        lambda side: (saved(side), side.store.save("source", {"said": []}, "s1")),
        lambda side: side.store.begin("copy_thread", "source", "thread"),
    ),
    "copy of what is missing": (None, lambda side: side.store.begin("copy_thread", "source", "thread")),
    "vacuum": (saved, lambda side: side.store.begin("vacuum", 0)),
    "forget_tenant": (saved, lambda side: side.store.begin("forget_tenant")),
}
CHECKPOINTS_MEANWHILE = (saved_over, thread_saved_anew, all_deleted)


# Turns


def lease(side: Side, token: bytes | None = None) -> Lease:
    taken = Lease((TENANT, "thread"), 60)
    if token is not None:
        taken.token = token
    return taken


def taken(side: Side) -> None:
    side.made = lease(side)
    side.run(side.leases.acquire(side.made))


def released(side: Side) -> None:
    taken(side)
    side.run(side.leases.release(side.made))


TURNS: dict[str, Case] = {
    "acquire": (None, lambda side: _acquire(side)),
    "acquire what is taken": (lambda side: side.run(side.leases.acquire(lease(side))), lambda side: _acquire(side)),
    "release": (taken, lambda side: side.begin(side.leases.release(side.made))),
}


def _acquire(side: Side) -> Call:
    side.made = lease(side)
    return side.begin(side.leases.acquire(side.made))


def turn_goes_round(side: Side) -> None:
    """End the current turn, and begin a turn of another process."""
    if side.made is not None:
        side.run(side.leases.release(side.made))
    side.run(side.leases.acquire(lease(side)))


def turn_goes_back(side: Side) -> None:
    if side.made is not None:
        side.run(side.leases.release(side.made))


# Graphs


def put(side: Side, words: str = "plum", checkpoint_id: str = "c1", parent: str | None = None) -> Call:
    data = {"said": [words, LONG], "kept": LONG}
    return side.saver.begin(
        "put", thread_id="thread", checkpoint_id=checkpoint_id, checkpoint_data=data, parent_checkpoint_id=parent
    )


def replaced(side: Side, words: str = "plum", *, run_id: str | None = None) -> Call:
    """Begin a save as LangGraph's saver does it."""
    values = [NewValue("said", 1, EncodedValue("json", f'"{words} {LONG}"'.encode()))]
    new = NewVersion(
        codec="json",
        ns="default",
        checkpoint_id="c1",
        parent_id=None,
        head=EncodedValue("json", b""),
        values=lambda base: values,
        metadata=None,
        run_id=run_id,
        needs=0,
        replace=True,
        token=os.urandom(16),
    )
    return side.begin(side.versions.saving.save(TENANT, "thread", new, None))


def write(side: Side, value: str = "yes", *, idx: int = 0, replace: bool = True) -> Call:
    row = LoadedWrite("task", idx, "channel", "", EncodedValue("json", f'[["channel", "{value}"]]'.encode()))
    other = LoadedWrite("task", 1, "other", "", EncodedValue("json", f'[["other", "{value}"]]'.encode()))
    version_key = keys.version_key("default", "c1")
    saving = side.versions.saving
    return side.begin(saving.put_writes(TENANT, "thread", version_key, "task", [row, other], replace=replace))


def put_first(side: Side) -> None:
    put(side).finish()


def put_two(side: Side) -> None:
    put(side).finish()
    put(side, "fig", "c2", "c1").finish()


def thread_goes_on(side: Side) -> None:
    put(side, "later", "d1").finish()
    for number in range(10):
        replaced(side, f"again {number}").finish()
    write(side, "no").finish()
    side.saver.begin("put", thread_id="source", checkpoint_id="s2", checkpoint_data={"said": LONG}).finish()


def graph_made_anew(side: Side) -> None:
    side.saver.delete_thread("thread")
    put(side, "later", "c1").finish()
    put(side, "later", "c9", "c1").finish()


def graph_deleted(side: Side) -> None:
    side.saver.delete_thread("thread")


def source_put(side: Side) -> None:
    side.saver.put(thread_id="source", checkpoint_id="s1", checkpoint_data={"said": LONG})


GRAPHS: dict[str, Case] = {
    "put first": (None, put),
    "put behind": (put_first, lambda side: put(side, "nut", "c2", "c1")),
    "put again": (put_first, put),
    "put that is refused": (put_first, lambda side: put(side, "nut")),
    "replace first": (None, replaced),
    "replace": (lambda side: replaced(side).finish(), lambda side: replaced(side, "nut")),
    "put_writes": (None, write),
    "put_writes again": (lambda side: write(side, "before").finish(), write),
    "put_writes once": (None, lambda side: write(side, replace=False)),
    "put_writes once again": (
        lambda side: write(side, replace=False).finish(),
        lambda side: write(side, replace=False),
    ),
    "put_writes special": (None, lambda side: write(side, idx=-1, replace=False)),
    "delete_thread": (put_two, lambda side: side.saver.begin("delete_thread", "thread")),
    "delete_thread that is missing": (None, lambda side: side.saver.begin("delete_thread", "thread")),
    "delete_checkpoint": (
        put_two,
        lambda side: side.saver.begin("delete_checkpoint", thread_id="thread", checkpoint_id="c1"),
    ),
    "delete_checkpoint that is missing": (
        None,
        lambda side: side.saver.begin("delete_checkpoint", thread_id="thread", checkpoint_id="c1"),
    ),
    "prune": (put_two, lambda side: side.saver.begin("prune", thread_id="thread")),
    "prune of nothing": (put_first, lambda side: side.saver.begin("prune", thread_id="thread")),
    "prune of what is missing": (None, lambda side: side.saver.begin("prune", thread_id="thread")),
    "delete_runs": (
        lambda side: replaced(side, run_id="run").finish(),
        lambda side: side.begin(side.versions.removing.delete_runs(TENANT, ["run"])),
    ),
    "copy": (source_put, lambda side: side.saver.begin("copy_thread", "source", "thread")),
    "copy that is refused": (
        lambda side: (source_put(side), put_first(side)),
        lambda side: side.saver.begin("copy_thread", "source", "thread"),
    ),
    "copy of what is missing": (None, lambda side: side.saver.begin("copy_thread", "source", "thread")),
    "vacuum": (put_two, lambda side: side.saver.begin("vacuum", 0)),
}
GRAPHS_MEANWHILE = (thread_goes_on, graph_made_anew, graph_deleted)


# Memories

PLACE = ("users", "ada")


def item(side: Side, value: str = "tea", **options: Any) -> Call:
    return side.memories.begin("put", PLACE, "drink", {"text": value}, **options)


def item_put(side: Side) -> None:
    item(side).finish()


def item_put_anew(side: Side) -> None:
    side.memories.delete(PLACE, "drink")
    item(side, "water").finish()


MEMORIES: dict[str, Case] = {
    "put": (None, item),
    "put over": (item_put, lambda side: item(side, "coffee")),
    "put with a version": (item_put, lambda side: item(side, "coffee", if_version=1)),
    "put with another version": (item_put, lambda side: item(side, "coffee", if_version=2)),
    "put_batch": (None, lambda side: side.memories.begin("put_batch", [Put(PLACE, "drink", 1), Put(PLACE, "b", 2)])),
    "put_batch with another version": (
        item_put,
        lambda side: side.memories.begin("put_batch", [Put(PLACE, "drink", 1, if_version=2), Put(PLACE, "b", 2)]),
    ),
    "write_batch": (
        item_put,
        lambda side: side.memories.begin("write_batch", [Put(PLACE, "b", 2)], [(PLACE, "drink")]),
    ),
    "delete": (item_put, lambda side: side.memories.begin("delete", PLACE, "drink")),
    "delete of what is missing": (None, lambda side: side.memories.begin("delete", PLACE, "drink")),
    "clear_namespace": (item_put, lambda side: side.memories.begin("clear_namespace", PLACE)),
    "clear_namespace that is empty": (None, lambda side: side.memories.begin("clear_namespace", PLACE)),
}


def item_put_again(side: Side) -> None:
    item(side, "water").finish()


def item_deleted(side: Side) -> None:
    side.memories.delete(PLACE, "drink")


# Working memory


def ask(side: Side, *commands: calls.Command[Any], ttl_us: int | None = None) -> Call:
    address = calls.Address(TENANT, "session")
    call = calls.Call("call", address, commands, ttl_us=ttl_us, token=os.urandom(16))
    return side.begin(side.working.execute(call))


def variable(value: int = 1, key: str = "a") -> calls.Variable:
    return calls.Variable(key, str(value).encode(), str(value).encode())


def filled(side: Side) -> None:
    ask(side, calls.Write((variable(), variable(2, "b")))).finish()
    ask(side, calls.WriteTask(b'"task"')).finish()
    ask(side, calls.Append(b'"note"')).finish()
    ask(side, calls.CreateCheckpoint("kept")).finish()


def session_goes_on(side: Side) -> None:
    ask(side, calls.Write((variable(7),))).finish()
    ask(side, calls.Append(b'"later"')).finish()


def session_made_anew(side: Side) -> None:
    ask(side, calls.End()).finish()
    filled(side)


def session_ended(side: Side) -> None:
    ask(side, calls.End()).finish()


COMMANDS: dict[str, calls.Command[Any]] = {
    "write": calls.Write((variable(5),)),
    "remove": calls.Remove(("a",)),
    "clear": calls.Clear(),
    "increment": calls.Increment("a", 3),
    "compare and set": calls.CompareAndSet(variable(5), b"1"),
    "compare and set what is missing": calls.CompareAndSet(variable(5), None),
    "write the task": calls.WriteTask(b'"other"'),
    "append": calls.Append(b'"more"'),
    "clear notes": calls.ClearNotes(),
    "touch": calls.Touch(60_000_000),
    "create a checkpoint": calls.CreateCheckpoint("new"),
    "restore a checkpoint": calls.RestoreCheckpoint("kept", "undo"),
    "delete a checkpoint": calls.DeleteCheckpoint("kept"),
    "end": calls.End(),
}
WORKING: dict[str, Case] = {
    f"{name}{'' if prepare else ' of no session'}": (prepare, lambda side, command=command: ask(side, command))
    for name, command in COMMANDS.items()
    for prepare in (filled, None)
}
WORKING["forget_tenant"] = (filled, lambda side: side.begin(side.working.forget_tenant(TENANT)))


# Transcripts

SESSION = TranscriptKey("test", "project", "session")


def added(side: Side, number: int = 1, **options: Any) -> Call:
    return side.transcripts.begin("append", SESSION, [NewItem(number, str(number))], **options)


def listed(before: Any, items: Sequence[NewItem]) -> Any:
    return [*(before or []), *(item.content for item in items)]


def some_added(side: Side) -> None:
    added(side, 1).finish()
    added(side, 2, fold=listed).finish()
    side.transcripts.append(SESSION._replace(part="sub"), [NewItem(1, "1")])


def two_written(side: Side) -> Call:
    writes = [Write(SESSION, [NewItem(5, "5")]), Write(SESSION._replace(name="user"), (), Header(5))]
    return side.transcripts.begin("write", writes)


def one_removed(side: Side) -> Call:
    return side.transcripts.begin("write", [Write(SESSION, remove=[1], needs="2")])


def one_deleted(side: Side) -> Call:
    revision = side.transcripts.get(SESSION).revision
    return side.transcripts.begin("write", [Write(SESSION, delete=True, expected=revision)])


TRANSCRIPTS: dict[str, Case] = {
    "append to a new one": (None, added),
    "append": (some_added, lambda side: added(side, 3)),
    "append of a stored item": (some_added, added),
    "append with a fold": (some_added, lambda side: added(side, 3, fold=listed)),
    "append that is refused": (some_added, lambda side: added(side, 3, expected=0)),
    "append with a header": (some_added, lambda side: added(side, 3, header=Header({"a": 1}, "tag"))),
    "write of two": (some_added, two_written),
    "removal of an item": (some_added, one_removed),
    "deletion in a write": (some_added, one_deleted),
    "replace": (some_added, lambda side: side.transcripts.begin("replace", SESSION, "1", "other")),
    "replace of what is missing": (some_added, lambda side: side.transcripts.begin("replace", SESSION, "9", "other")),
    "pop": (some_added, lambda side: side.transcripts.begin("pop", SESSION)),
    "clear": (some_added, lambda side: side.transcripts.begin("clear", SESSION)),
    "clear of what is missing": (None, lambda side: side.transcripts.begin("clear", SESSION)),
    "delete": (some_added, lambda side: side.transcripts.begin("delete", SESSION)),
    "delete with parts": (some_added, lambda side: side.transcripts.begin("delete", SESSION, parts=True)),
    "delete of what is missing": (None, lambda side: side.transcripts.begin("delete", SESSION)),
    "delete_if that is refused": (some_added, lambda side: side.transcripts.begin("delete_if", SESSION, expected=1)),
    "forget_tenant": (some_added, lambda side: side.transcripts.begin("forget_tenant")),
}


def transcript_goes_on(side: Side) -> None:
    added(side, 7, fold=listed).finish()


def transcript_made_anew(side: Side) -> None:
    side.transcripts.delete(SESSION, parts=True)
    some_added(side)


def transcript_deleted(side: Side) -> None:
    side.transcripts.delete(SESSION, parts=True)


# memU

ADA = {"user_id": "ada"}


def remember(side: Side, summary: str = "Ada likes tea", *, reinforce: bool = False) -> Operation[Any]:
    return ItemOperations(side.memu).create_item(
        memory_type="profile", summary=summary, embedding=[1.0, 0.0], user_data=ADA, reinforce=reinforce
    )


def categorize(side: Side, description: str = "What she drinks") -> Operation[Any]:
    return CategoryOperations(side.memu).get_or_create_category(
        name="drinks", description=description, embedding=[1.0, 0.0], user_data=ADA
    )


def remembered(side: Side) -> None:
    side.made = side.run(remember(side, reinforce=True)), side.run(categorize(side))


def linked(side: Side) -> None:
    remembered(side)
    side.run(_link(side))


def _link(side: Side) -> Operation[Any]:
    made_item, category = side.made
    return RelationOperations(side.memu).link_item_category(made_item.id, category.id, ADA)


def _unlink(side: Side) -> Operation[Any]:
    made_item, category = side.made
    return RelationOperations(side.memu).unlink_item_category(made_item.id, category.id)


def _update(side: Side, summary: str = "Ada likes coffee") -> Operation[Any]:
    return ItemOperations(side.memu).update_item(item_id=side.made[0].id, summary=summary)


def _resource(side: Side) -> Operation[Any]:
    return ResourceOperations(side.memu).create_resource(
        url="u", modality="text", local_path="p", caption=None, embedding=None, user_data=ADA
    )


MEMU: dict[str, Case] = {
    "create_resource": (None, lambda side: side.begin(_resource(side))),
    "create_item": (None, lambda side: side.begin(remember(side))),
    "create_item to be reinforced": (None, lambda side: side.begin(remember(side, reinforce=True))),
    "reinforce": (remembered, lambda side: side.begin(remember(side, reinforce=True))),
    "update_item": (remembered, lambda side: side.begin(_update(side))),
    "delete_item": (remembered, lambda side: side.begin(ItemOperations(side.memu).delete_item(side.made[0].id))),
    "clear_items": (remembered, lambda side: side.begin(ItemOperations(side.memu).clear_items())),
    "clear_categories": (remembered, lambda side: side.begin(CategoryOperations(side.memu).clear_categories())),
    "get_or_create_category": (None, lambda side: side.begin(categorize(side))),
    "update_category": (
        remembered,
        lambda side: side.begin(
            CategoryOperations(side.memu).update_category(category_id=side.made[1].id, summary="new")
        ),
    ),
    "link": (remembered, lambda side: side.begin(_link(side))),
    "unlink": (linked, lambda side: side.begin(_unlink(side))),
}


def memu_goes_on(side: Side) -> None:
    side.run(remember(side, reinforce=True))
    side.run(categorize(side, "Drinks"))
    if side.made:
        for operation in (_update(side, "Ada likes water"), _link(side)):
            with suppress(LocusMySQLError):
                side.run(operation)


def memu_unlinked(side: Side) -> None:
    if side.made:
        side.run(_unlink(side))


def memu_cleared(side: Side) -> None:
    side.run(ItemOperations(side.memu).clear_items())
    side.run(CategoryOperations(side.memu).clear_categories())
    side.run(remember(side, reinforce=True))


#: The writes of each family, the writes of other processes meanwhile, and the prefix of its tables.
FAMILIES: dict[str, tuple[dict[str, Case], Sequence[Meanwhile], str]] = {
    "checkpoints": (CHECKPOINTS, CHECKPOINTS_MEANWHILE, "locus_store_"),
    "turns": (TURNS, (turn_goes_round, turn_goes_back), "locus_store_"),
    "graphs": (GRAPHS, GRAPHS_MEANWHILE, "locus_version"),
    "memories": (MEMORIES, (item_put_again, item_put_anew, item_deleted), "locus_memory_"),
    "working": (WORKING, (session_goes_on, session_made_anew, session_ended), "locus_working_"),
    "transcripts": (
        TRANSCRIPTS,
        (transcript_goes_on, transcript_made_anew, transcript_deleted),
        "locus_transcript",
    ),
    "memu": (MEMU, (memu_goes_on, memu_unlinked, memu_cleared), "memu_"),
}


class Tables:
    """The tables of one family.

    Args:
        raw: A connection that has the schema selected.
        prefix: The prefix of their names.
    """

    def __init__(self, raw: pymysql.Connection[Any], prefix: str) -> None:
        self._raw = raw
        raw.autocommit(True)
        self._names = [name for (name,) in self._rows("SHOW TABLES") if name.startswith(prefix)]
        assert self._names, f"there are no tables named {prefix}…"
        self._rows("SET FOREIGN_KEY_CHECKS = 0")

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table."""
        return {name: sorted(self._rows(f"SELECT * FROM {name}"), key=repr) for name in self._names}

    def empty(self) -> None:
        """Remove all rows."""
        for name in self._names:
            self._rows(f"DELETE FROM {name}")

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._raw.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())


def changes(one: Side, other: Side, tables: Tables, case: Case, then: Meanwhile) -> list[str]:
    """Deliver each packet of a call late, and return the tables that it changed."""
    prepare, begin = case
    found: list[str] = []
    for packets in range(20):
        tables.empty()
        one.begin_anew()
        if prepare is not None:
            prepare(one)
        call = begin(one)
        for _ in range(packets):
            if not call.done:
                call.step()
        if call.done:
            with suppress(LocusMySQLError):
                call.finish()
            assert packets, "the call sent nothing"
            return found
        if all(statement.brings_rows for statement in call.packet):
            with suppress(LocusMySQLError):
                call.finish()
            continue
        arrive = call.delay_request()
        with suppress(LocusMySQLError):
            call.finish()
        other.made = one.made
        with suppress(LocusMySQLError):
            then(other)
        before = tables.contents()
        arrive()
        after = tables.contents()
        found += [f"{table} by packet {packets}" for table in before if before[table] != after[table]]
    raise AssertionError("The call never ended.")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("no_housekeeping")
def test_a_packet_that_arrives_late_changes_nothing(stage: Stage, raw: pymysql.Connection[Any], family: str) -> None:
    """Covers each packet of each write, after each kind of later write."""
    one, other = Side(stage), Side(stage)
    writes, meanwhile, prefix = FAMILIES[family]
    # Creating the first process of these families creates their tables.
    {"graphs": lambda: one.saver, "memories": lambda: one.memories, "transcripts": lambda: one.transcripts}.get(
        family, lambda: one.store
    )()
    with raw.cursor() as cursor:
        for schema in {"working": [one.working.schema], "memu": [one.memu.schema]}.get(family, []):
            for statement in schema.create():
                cursor.execute((OCEANBASE.statement(statement) if ENGINE == "oceanbase" else statement).sql)
    raw.commit()
    tables = Tables(raw, prefix)
    found = {
        f"{name}, after {then.__name__}": changes(one, other, tables, case, then)
        for name, case in writes.items()
        for then in meanwhile
    }
    assert {name: changed for name, changed in found.items() if changed} == {}
