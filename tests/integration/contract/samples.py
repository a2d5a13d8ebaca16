"""`SAMPLES`: for each family, how a test writes owners with their parts, reads, lists and deletes them.

An owner is what a family's writes lock first: a thread, a session, a transcript, of memories the namespaces below one
label, of memU a user.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import (
    CheckpointStore,
    Database,
    MemoryStore,
    MySQLBackend,
    MySQLCheckpointer,
    MySQLCheckpointSaver,
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointer,
    SyncMySQLCheckpointSaver,
    SyncWorkingMemory,
    WorkingMemory,
)
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.errors import CorruptCheckpoint, DecryptionFailed
from locus_mysql.families.registry import find_family
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore
from locus_mysql.families.working.content import TASK
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.integrations.memu import AsyncMemuDatabase, AsyncRecallDatabase, MemuDatabase, RecallDatabase
from locus_mysql.integrations.memu.records import DefaultUserModel
from locus_mysql.memory import Put
from locus_mysql.records.moving import PartRecord
from locus_mysql.records.tables import Table, Tables
from locus_mysql.records.transfer import RowSource
from locus_mysql.working import MySQLStorage, TaskState

from ...either_side import AnyStore
from ..encryption.conftest import MARKER
from ..engines import ENGINE
from ..families import toys

#: What a read returns: values by what identifies them.
Facts: TypeAlias = Mapping[Any, Any]
Read: TypeAlias = Callable[[], Awaitable[Facts]]


def text(*names: object) -> str:
    """Return a text with the marker that is different for other names."""
    return f"{MARKER} {' '.join(map(str, names))} " + "word " * 60


def state_of(step: int) -> dict[str, Any]:
    """Return the state after a step: it grows with each."""
    return {"step": step, "log": [f"entry {number}" for number in range(step + 1)]}


def steps_in(states: list[Any]) -> list[int]:
    """Return the steps of states, and check their content."""
    assert states == [state_of(state["step"]) for state in states]
    return [state["step"] for state in states]


class Sample(ABC):
    """A family's content.

    Attributes:
        family: The name of the family.
        classes: The asynchronous and the blocking store.
        rows: The number of sealed values that one `fill` stores.
        expires: Whether owners expire.
        encrypts: Whether the family encrypts.
        inspected: Whether the inspector lists its owners.
        has_turns: Whether callers can take turns on its owners.
    """

    family: ClassVar[str]
    classes: ClassVar[tuple[Callable[..., Any], Callable[..., Any]]]
    rows: ClassVar[int]
    expires: ClassVar[bool] = True
    encrypts: ClassVar[bool] = True
    inspected: ClassVar[bool] = True
    has_turns: ClassVar[bool] = False

    def __repr__(self) -> str:
        return self.family

    def open(self, where: MySQLConfig | Database, side: str) -> AnyStore:
        """Return a store of a side, such as ``pymysql-sync``."""
        driver, _, way = side.rpartition("-")
        given = where if isinstance(where, Database) else where.model_copy(update={"driver": driver})
        return AnyStore(self.classes[way == "sync"](given))

    def tables(self, config: MySQLConfig) -> Tables:
        """Return the declaration of the tables, of memU of the first."""
        return next(iter(find_family(self.family).tables(config)))

    def every_table(self, config: MySQLConfig) -> Iterator[tuple[Tables, Table]]:
        """Yield each table of owners and of parts, with the declaration that has it."""
        for tables in find_family(self.family).tables(config):
            yield from ((tables, table) for table in (tables.owner, *tables.parts))

    @abstractmethod
    async def fill(self, store: AnyStore, name: str) -> None:
        """Write content with `MARKER` under a name; each name has content of its own, some of it long."""

    @abstractmethod
    def reads(self, store: AnyStore, name: str) -> list[Read]:
        """Return each way to read what `fill` wrote."""

    async def read(self, store: AnyStore, name: str) -> Facts:
        """Return all content of a name; nothing if it does not exist."""
        return {place: value for read in self.reads(store, name) for place, value in (await read()).items()}

    @abstractmethod
    async def names(self, store: AnyStore) -> list[str]:
        """Return the names that exist."""

    @abstractmethod
    async def delete(self, store: AnyStore, name: str) -> None:
        """Delete an owner with its parts."""

    @abstractmethod
    async def write(self, store: AnyStore, name: str, step: int) -> None:
        """Add a step to a name, after all others, by one call."""

    @abstractmethod
    async def steps(self, store: AnyStore, name: str) -> list[int]:
        """Return the steps of a name in their order, and check what is stored with them."""

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        """Return a turn on an owner: a context manager of the store's side."""
        return store.store.turn(name, **options)

    async def inspect(self, inspector: Inspector, name: str) -> object:
        """Return what the inspector shows of the content of a name."""
        await inspector.threads(self.family)
        view = await inspector.state(self.family, self.thread(name))
        assert view is not None
        assert view.damage is None
        return view.state

    def thread(self, name: str) -> str:
        """Return the id of a name in the inspector."""
        return name

    async def page(self, inspector: Inspector, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        """Return a page of the names that the inspector lists, and where the next page begins."""
        page = await inspector.threads(self.family, limit=limit, cursor=cursor)
        return [row.thread_id.removeprefix(self.thread("")) for row in page.items], page.cursor


class _Dicts(Sample):
    family = "dicts"
    classes: ClassVar[tuple[Callable[..., Any], Callable[..., Any]]] = (CheckpointStore, SyncCheckpointStore)
    rows = 4
    has_turns = True
    turns: tuple[str, ...] = ("1", "2", "3", "4")

    async def fill(self, store: AnyStore, name: str) -> None:
        for turn in self.turns:
            messages = [{"role": "user", "content": text(name, number)} for number in range(int(turn))]
            await store.save(name, {"messages": messages, "turn": turn}, turn, {"of": name, "turn": turn})

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        async def loaded(turn: str | None = None) -> Facts:
            state = await store.load(name, turn)
            return {} if state is None else {("state", turn or state["turn"]): state}

        async def described(turn: str) -> Facts:
            found = await store.get_metadata(name, turn)
            return {} if found is None else {("metadata", found["checkpoint_id"]): found["metadata"]}

        async def listed() -> Facts:
            return {("metadata", one["checkpoint_id"]): one["metadata"] for one in await store.history(name)}

        async def found() -> Facts:
            every = await store.query_by_metadata("of", name)
            return {("metadata", one["checkpoint_id"]): one["metadata"] for one in every}

        each = [partial(read, turn) for read in (loaded, described) for turn in self.turns]
        return [loaded, listed, found, *each]

    async def names(self, store: AnyStore) -> list[str]:
        return list(await store.list_threads(limit=1_000))

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete(name)

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await store.save(name, state_of(step))

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        newest_first = await store.list_checkpoints(name, limit=10_000)
        return steps_in([await store.load(name, one) for one in reversed(newest_first)])


class _Agents(_Dicts):
    family = "agents"
    classes = (MySQLCheckpointer, SyncMySQLCheckpointer)
    rows = 3
    turns = ("1", "2", "3")

    async def fill(self, store: AnyStore, name: str) -> None:
        for turn in self.turns:
            messages = tuple(Message.user(text(name, number)) for number in range(int(turn)))
            await store.save(AgentState(run_id=turn, messages=messages), name, turn)

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        async def loaded(turn: str | None = None) -> Facts:
            state = await store.load(name, turn)
            if state is None:
                return {}
            return {("state", state.run_id): [message.content for message in state.messages]}

        return [loaded, *(partial(loaded, turn) for turn in self.turns)]

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        messages = tuple(Message.user(f"step {number}") for number in range(step + 1))
        await store.save(AgentState(messages=messages), name)

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        newest_first = await store.list_checkpoints(name, limit=10_000)
        states = [await store.load(name, one) for one in reversed(newest_first)]
        assert all(state.messages[0].content == "step 0" for state in states)
        return [len(state.messages) - 1 for state in states]


class _Current(_Dicts):
    family = "current"
    classes = (MySQLBackend, SyncMySQLBackend)
    rows = 1
    has_turns = False

    async def fill(self, store: AnyStore, name: str) -> None:
        for turn in range(1, 3):  # the second one replaces the first
            await store.save(name, {"text": text(name, turn), "turn": turn}, None, {"of": name})

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        async def loaded() -> Facts:
            state = await store.load(name)
            return {} if state is None else {"state": state}

        async def described() -> Facts:
            found = await store.get_metadata(name)
            return {} if found is None else {found["thread_id"]: found["metadata"]}

        async def found() -> Facts:
            return {one["thread_id"]: one["metadata"] for one in await store.query_by_metadata("of", name)}

        return [loaded, described, found]

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        state = await store.load(name)
        return [] if state is None else list(range(steps_in([state])[0] + 1))


class _Graphs(Sample):
    family = "graphs"
    classes = (MySQLCheckpointSaver, SyncMySQLCheckpointSaver)
    rows = 10
    has_turns = True

    async def fill(self, store: AnyStore, name: str) -> None:
        for turn in range(1, 4):
            checkpoint = {
                "messages": [{"role": "user", "content": text(name, number)} for number in range(1, turn + 1)],
                "notes": text(name, 10 + turn),
                "step": f"{MARKER} {turn}",
            }
            parent = str(turn - 1) if turn > 1 else None
            one = {"thread_id": name, "checkpoint_id": str(turn)}
            await store.put(
                **one, checkpoint_data=checkpoint, parent_checkpoint_id=parent, metadata={"of": name, "turn": turn}
            )
            writes = [("messages", text(name, 20 + turn)), ("step", f"{MARKER} {name} {turn}")]
            await store.put_writes(**one, task_id="task", writes=writes)

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        def fact(found: Any) -> Facts:
            if found is None:
                return {}
            content = {key: value for key, value in found.items() if key != "created_at"}
            return {("checkpoint", found["checkpoint_id"]): content}

        async def loaded(turn: str | None = None) -> Facts:
            return fact(await store.get(thread_id=name, checkpoint_id=turn))

        async def written(turn: str) -> Facts:
            found = await store.get_writes(thread_id=name, checkpoint_id=turn)
            return {("writes", turn): found} if found else {}

        async def listed() -> Facts:
            every = await store.list_checkpoints(thread_id=name)
            return {place: value for found in every for place, value in fact(found).items()}

        return [loaded, listed, *(partial(read, turn) for read in (loaded, written) for turn in ("1", "2", "3"))]

    async def names(self, store: AnyStore) -> list[str]:
        return list(await store.list_threads(limit=1_000))

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete_thread(name)

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        one = {"thread_id": name, "checkpoint_id": f"c{step:06}", "checkpoint_data": state_of(step)}
        await store.put(**one, parent_checkpoint_id=f"c{step - 1:06}" if step else None)

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        newest_first = await store.list_checkpoints(thread_id=name, limit=10_000)
        return steps_in([one["checkpoint"] for one in reversed(newest_first)])


def _vector(*numbers: int) -> list[float]:
    return [1.0 + sum(numbers) * index % 7 for index in range(32)]


class _Memories(Sample):
    family = "memories"
    classes = (
        partial(MemoryStore, dims=32, vector_cache_bytes=0),
        partial(SyncMemoryStore, dims=32, vector_cache_bytes=0),
    )
    rows = 10

    async def fill(self, store: AnyStore, name: str) -> None:
        first: dict[str, Any] = {"metadata": {"kind": "fact"}, "ttl_s": store.config.ttl_s}
        await store.put((name, "a"), "first", {"text": text(name, 0)}, embedding=_vector(1))
        await store.put((name, "a"), "first", {"text": text(name, 1)}, embedding=_vector(2), **first)
        await store.put_batch(
            [
                Put((name, "b"), str(number), text(name, number), embedding=_vector(number), ttl_s=store.config.ttl_s)
                for number in range(2, 6)
            ]
        )

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        places = [((name, "a"), "first"), *(((name, "b"), str(number)) for number in range(2, 6))]

        def fact(item: Any) -> Facts:
            return {} if item is None else {(item.namespace, item.key): (item.value, item.metadata)}

        async def loaded(place: Any) -> Facts:
            return fact(await store.get_item(*place))

        async def embedded(place: Any) -> Facts:
            found = await store.get_embeddings(*place)
            return {("embeddings", *place): [[round(one, 4) for one in vector] for vector in found]} if found else {}

        async def nearest(**options: Any) -> Facts:
            hits = await store.search((name,), embedding=_vector(3), limit=10, exact=True, **options)
            scores = {("score", hit.item.namespace, hit.item.key): round(hit.score, 6) for hit in hits}
            return {**scores, **{place: value for hit in hits for place, value in fact(hit.item).items()}}

        async def listed() -> Facts:
            hits = await store.search((name,), limit=100)
            return {place: value for hit in hits for place, value in fact(hit.item).items()}

        each = [partial(read, place) for read in (loaded, embedded) for place in places]
        return [nearest, partial(nearest, metadata_filter={"kind": "fact"}), listed, *each]

    async def names(self, store: AnyStore) -> list[str]:
        return sorted({labels[0] for labels in await store.list_namespaces((), limit=1_000)})

    async def delete(self, store: AnyStore, name: str) -> None:
        for labels in ((name, "a"), (name, "b"), (name,)):
            await store.clear_namespace(labels)

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await store.put((name,), f"{step}", state_of(step), embedding=_vector(step))

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        hits = await store.search((name,), limit=10_000)
        return steps_in(sorted((hit.item.value for hit in hits), key=lambda value: value["step"]))

    async def inspect(self, inspector: Inspector, name: str) -> object:
        rows = await inspector.items((name, "a"))
        view = await inspector.item((name, "a"), "first")
        assert view is not None
        return view.value, [row.preview for row in rows.items]

    async def page(self, inspector: Inspector, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        page = await inspector.namespaces((), limit=limit, cursor=cursor)
        return [row.namespace[0] for row in page.items], page.cursor


class _Sessions:
    """Opens sessions of working memory by their ids.

    Args:
        memory: The class of a session.
        where: The options, or a database.
    """

    def __init__(self, memory: Callable[..., Any], where: MySQLConfig | Database) -> None:
        self.database = where if isinstance(where, Database) else Database(where)
        self.config = self.database.config
        self._owned = where is not self.database
        self._memory, self._storage = memory, MySQLStorage(self.database)

    def session(self, name: str) -> AnyStore:
        """Return a session."""
        ttl = None if self.config.ttl_s is None else int(self.config.ttl_s)
        return AnyStore(self._memory(name, self._storage, session_ttl_s=ttl))

    @cached_property
    def _reader(self) -> Database:
        """The database of exports and of the inspector, which are asynchronous."""
        return Database(self.config.model_copy(update={"driver": "aiomysql"}))

    async def exported(self, name: str) -> Facts:
        """Return the entries of a session, and earlier ones that its checkpoints contain, as an export has them."""
        source = RowSource(find_family("working").tables(self.config), self.config, self._reader, threads=[name])
        pages = [unit.page async for unit in source.units()]
        for named in (damage for page in pages for damage in page.damaged):
            raise DecryptionFailed(named) if self.config.encryption is not None else CorruptCheckpoint(named)
        facts: dict[Any, Any] = {}
        for record in (record for page in pages for record in page.records if isinstance(record, PartRecord)):
            if record.role in ("entries", "history"):
                kind, name, *others = record.values
                value = others[0] if record.role == "entries" else others[2]
                # The values of the task state hold the time at which it was set.
                facts["exported", record.role, kind, str(name), kind == TASK or str(value)] = True
        return facts

    async def listed(self) -> list[str]:
        """Return the ids of the sessions."""
        return [row.session_id for row in (await Inspector(self._reader).sessions(limit=500)).items]

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.aclose()
        if self._owned:
            await self.database.aclose()
            self.database.close()


def _task(description: str) -> TaskState:
    return TaskState(task_id="t", description=description)


class _Working(Sample):
    family = "working"
    classes = (partial(_Sessions, WorkingMemory), partial(_Sessions, SyncWorkingMemory))
    rows = 9
    has_turns = True

    async def fill(self, store: AnyStore, name: str) -> None:
        session = store.store.session(name)
        await session.set("first", text(name, 1))
        await session.set_many({"second": [text(name, 2)], "counter": 40})
        await session.append_scratchpad(text(name, 3))
        await session.set_task_state(_task(text(name, 4)))
        await session.create_checkpoint("label")
        await session.set("first", text(name, 5))
        await session.append_scratchpad(text(name, 6))
        assert await session.increment("counter", 2) == 42
        assert await session.compare_and_set("second", [text(name, 2)], [text(name, 7)])
        assert not await session.compare_and_set("second", [text(name, 2)], [text(name, 8)])

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        async def variables() -> Facts:
            return {("variable", key): value for key, value in (await store.store.session(name).get_all()).items()}

        async def variable(key: str) -> Facts:
            value = await store.store.session(name).get(key)
            return {} if value is None else {("variable", key): value}

        async def notes(last: int | None = None) -> Facts:
            return dict.fromkeys(await store.store.session(name).get_scratchpad(last), True)

        async def task() -> Facts:
            found = await store.store.session(name).get_task_state()
            return {} if found is None else {"task": found.description}

        each = [partial(variable, key) for key in ("first", "second", "counter")]
        return [variables, *each, notes, partial(notes, 1), task, partial(store.store.exported, name)]

    async def names(self, store: AnyStore) -> list[str]:
        return list(await store.listed())

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.store.session(name).end()

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await store.store.session(name).append_scratchpad(f"{step}")

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        return store.store.session(name).store.turn(**options)

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        return [int(note) for note in await store.store.session(name).get_scratchpad()]

    async def inspect(self, inspector: Inspector, name: str) -> object:
        view = await inspector.session(name)
        assert view is not None
        return view.variables, view.task_state, view.scratchpad

    async def page(self, inspector: Inspector, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        page = await inspector.sessions(limit=limit, cursor=cursor)
        return [row.session_id for row in page.items], page.cursor


class _Transcripts(Sample):
    family = "transcripts"
    classes = (TranscriptStore, SyncTranscriptStore)
    rows = 6
    has_turns = True

    @staticmethod
    def _key(name: str) -> TranscriptKey:
        return TranscriptKey("kind", "collection", name)

    async def fill(self, store: AnyStore, name: str) -> None:
        key = self._key(name)
        await store.append(key, [NewItem({"role": "user", "content": text(name, number)}) for number in (1, 2)])
        header = Header(text(name, 5), f"tag {name}", f"scope {name}")
        await store.append(key, [NewItem(text(name, 3), "a"), NewItem(text(name, 4), "b")], header=header)
        await store.append(key, [NewItem(text(name, 6))], fold=lambda state, items: [state, len(items)])
        await store.replace(key, "a", text(name, 7))

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        key = self._key(name)

        async def header() -> Facts:
            found = await store.get(key)
            return {} if found is None else {"header": found.header}

        async def items() -> Facts:
            found = await store.read(key)
            return {} if found is None else {("item", one.item_id): one.content for one in found.items if one.item_id}

        async def opened() -> Facts:
            found = await store.open(key)
            if found is None:
                return {}
            transcript, every = found
            # Without keys, items without ids are bound to their transcript, not to their places in it.
            unnamed = {("item", None, str(one.content)): True for one in every if one.item_id is None}
            return {"header": transcript.header, **unnamed}

        return [header, items, opened]

    async def names(self, store: AnyStore) -> list[str]:
        return [one.key.name for one in await store.list_transcripts("kind", "collection")]

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete(self._key(name))

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await store.append(self._key(name), [NewItem(state_of(step))])

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        page = await store.read(self._key(name))
        return [] if page is None else steps_in([item.content for item in page.items])

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        return store.store.turn(self._key(name), **options)

    def thread(self, name: str) -> str:
        return f"kind/collection/{name}"


class _Memu(Sample):
    family = "memu"
    classes = (partial(AsyncMemuDatabase, vector_cache_bytes=0), partial(MemuDatabase, vector_cache_bytes=0))
    rows = 4
    expires = encrypts = inspected = False

    @staticmethod
    def _recall(store: AnyStore) -> Any:
        """Return a database with memu-cli's protocol on the same tables."""
        awaited = isinstance(store.store, AsyncMemuDatabase)
        return (AsyncRecallDatabase if awaited else RecallDatabase)(store.store.database, user_model=DefaultUserModel)

    async def fill(self, store: AnyStore, name: str) -> None:
        scope: dict[str, Any] = {"user_data": {"user_id": name}}
        items, categories = AnyStore(store.store.memory_item_repo), AnyStore(store.store.memory_category_repo)
        resource = await AnyStore(store.store.resource_repo).create_resource(
            url=f"u {name}", modality="text", local_path="p", caption=text(name, 0), embedding=None, **scope
        )
        item = await items.create_item(
            resource_id=resource.id, memory_type="profile", summary=text(name, 1), embedding=[1.0, 0.0], **scope
        )
        await items.update_item(item_id=item.id, extra={"ref_id": "r1", "a": [1.5, name]})
        await items.create_item(memory_type="event", summary=text(name, 2), embedding=[0.0, 1.0], **scope)
        category = await categories.get_or_create_category(
            name="drinks", description=text(name, 3), embedding=[1.0, 0.0], **scope
        )
        await AnyStore(store.store.category_item_repo).link_item_category(item.id, category.id, {"user_id": name})
        recall = self._recall(store)
        await AnyStore(recall.resource_repo).create_resource(
            url="w", local_path="p", caption=None, embedding=[1.0, len(name)], track="workspace", **scope
        )
        file = await AnyStore(recall.recall_file_repo).get_or_create_recall_file(
            name="tastes", description=text(name, 4), embedding=[2.0], **scope
        )
        await AnyStore(recall.recall_file_segment_repo).create_segment(
            recall_file_id=file.id, text=text(name, 5), embedding=[1.0], **scope
        )

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        scope, memu, recall = {"user_id": name}, store.store, self._recall(store)

        async def listed(repository: Any, method: str) -> Facts:
            found = await getattr(AnyStore(repository), method)(scope)
            records = found.values() if isinstance(found, Mapping) else found
            return {(method, one.id): one.model_dump(exclude={"created_at", "updated_at"}) for one in records}

        async def nearest(repository: Any, method: str) -> Facts:
            found = await getattr(AnyStore(repository), method)([1.0, 1.0], 10, scope)
            return {(method, one): round(score, 6) for one, score in found}

        return [
            partial(listed, memu.memory_item_repo, "list_items"),
            partial(listed, memu.memory_category_repo, "list_categories"),
            partial(listed, memu.category_item_repo, "list_relations"),
            partial(listed, memu.resource_repo, "list_resources"),
            partial(listed, recall.recall_file_repo, "list_recall_files"),
            partial(listed, recall.recall_file_segment_repo, "list_segments"),
            partial(nearest, memu.memory_item_repo, "vector_search_items"),
            partial(nearest, recall.resource_repo, "vector_search_resources"),
        ]

    async def names(self, store: AnyStore) -> list[str]:
        items = await AnyStore(store.store.memory_item_repo).list_items()
        return sorted({item.user_id for item in items.values()})

    async def delete(self, store: AnyStore, name: str) -> None:
        scope, recall = {"user_id": name}, self._recall(store)
        await AnyStore(store.store.memory_item_repo).clear_items(scope)
        await AnyStore(store.store.memory_category_repo).clear_categories(scope)
        await AnyStore(store.store.resource_repo).clear_resources(scope)
        await AnyStore(recall.recall_file_repo).clear_recall_files(scope)
        await AnyStore(recall.recall_file_segment_repo).clear_segments(scope)

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await AnyStore(store.store.memory_item_repo).create_item(
            memory_type="profile", summary=f"{step}", embedding=[1.0, step], user_data={"user_id": name}
        )

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        repository, where = AnyStore(store.store.memory_item_repo), {"user_id": name}
        items = await repository.list_items(where)
        assert items.keys() == dict(await repository.vector_search_items([1.0, 0.0], 10_000, where)).keys()
        return [int(item.summary) for item in items.values()]


class _Toys(Sample):
    family = "toys"
    classes = (toys.ToyBox, toys.SyncToyBox)
    rows = 4
    expires = False

    async def fill(self, store: AnyStore, name: str) -> None:
        await store.put(name, wheels=[text(name, number).encode() for number in range(4)])

    def reads(self, store: AnyStore, name: str) -> list[Read]:
        async def toy() -> Facts:
            return dict(await store.find([name]))

        async def wheels() -> Facts:
            return dict(await store.wheels(name))

        return [toy, wheels]

    async def names(self, store: AnyStore) -> list[str]:
        return [row.name for row in await store.page("", 1_000)]

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.remove(name)

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await store.put(name, wheels=[json.dumps(state_of(step)).encode()], first=step)

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        return steps_in([json.loads(content) for content in (await store.wheels(name)).values()])


SAMPLES: dict[str, Sample] = {
    one.family: one
    for one in (
        _Dicts(),
        _Current(),
        _Agents(),
        _Graphs(),
        _Memories(),
        _Working(),
        _Transcripts(),
        _Memu(),
        _Toys(),
    )
}

#: Families whose tables can be created without them, so that tests may reuse them.
_KEPT = SAMPLES.keys() - {"memu", "toys"}


def every_family(
    wanted: Callable[[Sample], object] = lambda sample: True, *, kept: bool = True
) -> pytest.MarkDecorator:
    """Parametrise a test with the ``sample`` of every family, or of those that are wanted.

    Args:
        wanted: Decides about a family.
        kept: Whether the tables have their usual names and options, so that other tests may have used them before.
    """
    marks = {name: [pytest.mark.kept_tables(name)] if kept and name in _KEPT else [] for name in SAMPLES}
    here = SAMPLES.keys() if ENGINE == "mysql" else OCEANBASE.families
    chosen = [one for one in SAMPLES.values() if wanted(one) and one.family in here]
    params = [pytest.param(one, marks=marks[one.family]) for one in chosen]
    return pytest.mark.parametrize("sample", params, ids=repr)
