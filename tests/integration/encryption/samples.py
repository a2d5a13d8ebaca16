"""Content for each family that encrypts: how a test writes it, and how it reads all of it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from locus_mysql import (
    CheckpointStore,
    Database,
    MemoryStore,
    MySQLBackend,
    MySQLCheckpointSaver,
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointSaver,
    SyncWorkingMemory,
    WorkingMemory,
)
from locus_mysql.errors import DecryptionFailed
from locus_mysql.families.registry import find_family
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore
from locus_mysql.families.working.content import TASK
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.memory import Put
from locus_mysql.records.moving import PartRecord
from locus_mysql.records.transfer import RowSource
from locus_mysql.working import TaskState

from ...either_side import AnyStore
from .conftest import MARKER


@dataclass(frozen=True)
class Sample:
    """A family's content.

    Args:
        family: The name of the family.
        classes: The asynchronous and the blocking store.
        fill: Writes content with `MARKER` under a name; each name has content of its own, some of it long.
        read: Returns all content of a name.
        inspect: Returns what the inspector shows of the content of a name.
        rows: The number of encrypted values that one `fill` stores.
    """

    family: str
    classes: tuple[Callable[[Any], Any], Callable[[Any], Any]]
    fill: Callable[[AnyStore, str], Awaitable[None]]
    read: Callable[[AnyStore, str], Awaitable[object]]
    inspect: Callable[[Inspector, str], Awaitable[object]]
    rows: int

    def open(self, config: MySQLConfig, side: str) -> AnyStore:
        """Return a store."""
        driver, _, way = side.rpartition("-")
        given = config.model_copy(update={"driver": driver})
        return AnyStore(self.classes[way == "sync"](given))


def text(*names: object) -> str:
    """Return a text with the marker that is different for other names."""
    return f"{MARKER} {' '.join(map(str, names))} " + "word " * 60


def _transcript(name: str) -> TranscriptKey:
    return TranscriptKey("kind", "collection", name)


async def _fill_transcript(store: AnyStore, name: str) -> None:
    key = _transcript(name)
    await store.append(key, [NewItem({"text": text(name, 1)}), NewItem({"text": text(name, 2)})])
    await store.append(key, [NewItem(text(name, 3), "a"), NewItem(text(name, 4), "b")], header=Header(text(name, 5)))
    await store.append(key, [NewItem(text(name, 6))], fold=lambda state, items: [state, len(items)])
    await store.replace(key, "a", text(name, 7))


async def _read_transcript(store: AnyStore, name: str) -> object:
    transcript, items = await store.open(_transcript(name))
    return transcript.header, [(item.seq, item.item_id, item.content) for item in items]


async def _inspect_transcript(inspector: Inspector, name: str) -> object:
    await inspector.threads("transcripts")
    view = await inspector.state("transcripts", f"kind/collection/{name}")
    assert view is not None
    assert view.damage is None
    return view.state


class _Sessions:
    """Opens sessions of working memory by their ids.

    Args:
        memory: The class of a session.
        config: The options.
    """

    def __init__(self, memory: Callable[..., Any], config: MySQLConfig) -> None:
        self._memory, self.database = memory, Database(config)

    def session(self, name: str) -> AnyStore:
        """Return a session."""
        return AnyStore(self._memory(name, self.database))

    async def kept(self, name: str) -> Any:
        """Return the entries of a session, and earlier ones that its checkpoints contain, as an export has them."""
        config = self.database.config
        source = RowSource(find_family("working").tables(config), config, self.database, threads=[name])
        pages = [unit.page async for unit in source.units()]
        for page in pages:
            for damage in page.damaged:
                raise DecryptionFailed(damage)
        records = [record for page in pages for record in page.records if isinstance(record, PartRecord)]
        # The values of the task state hold the time at which it was set.
        return [
            (part, row[:2], row[0] == TASK or row[2 if part == "entries" else 4])
            for part, row in records
            if part in ("entries", "history")
        ]

    async def close(self) -> None:
        """Close the connections."""
        await self.database.aclose()
        self.database.close()


def _task(description: str) -> TaskState:
    return TaskState(task_id="t", description=description)


async def _fill_session(store: AnyStore, name: str) -> None:
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


async def _read_session(store: AnyStore, name: str) -> object:
    session = store.store.session(name)
    task = await session.get_task_state()
    return (
        [await session.get_all(), await session.get_scratchpad(), task and task.description],
        await store.store.kept(name),
    )


async def _inspect_session(inspector: Inspector, name: str) -> object:
    view = await inspector.session(name)
    assert view is not None
    return view.variables, view.task_state, view.scratchpad


async def _fill_graph(store: AnyStore, name: str) -> None:
    for turn in range(1, 4):
        checkpoint = {
            "messages": [{"role": "user", "content": text(name, number)} for number in range(1, turn + 1)],
            "notes": text(name, 10 + turn),
            "step": f"{MARKER} {turn}",
        }
        parent = str(turn - 1) if turn > 1 else None
        await store.put(
            thread_id=name, checkpoint_id=str(turn), checkpoint_data=checkpoint, parent_checkpoint_id=parent
        )
        writes = [("messages", text(name, 20 + turn)), ("step", MARKER)]
        await store.put_writes(thread_id=name, checkpoint_id=str(turn), task_id="task", writes=writes)


async def _read_graph(store: AnyStore, name: str) -> object:
    found = await store.list_checkpoints(thread_id=name)
    return (
        [(one["checkpoint_id"], one["checkpoint"]) for one in found],
        [await store.get_writes(thread_id=name, checkpoint_id=one["checkpoint_id"]) for one in found],
        (await store.get(thread_id=name))["checkpoint"],
    )


async def _inspect_graph(inspector: Inspector, name: str) -> object:
    await inspector.threads("graphs")
    view = await inspector.state("graphs", name)
    assert view is not None
    assert view.damage is None
    return view.state


def _vector(*numbers: int) -> list[float]:
    return [1.0 + sum(numbers) * index % 7 for index in range(32)]


async def _fill_memory(store: AnyStore, name: str) -> None:
    await store.put((name, "a"), "first", {"text": text(name, 0)}, embedding=_vector(1))
    await store.put((name, "a"), "first", {"text": text(name, 1)}, embedding=_vector(2), metadata={"kind": "fact"})
    puts = [Put((name, "b"), str(number), text(name, number), embedding=_vector(number)) for number in range(2, 6)]
    await store.put_batch(puts)


async def _read_memory(store: AnyStore, name: str) -> object:
    hits = await store.search((name,), embedding=_vector(3), limit=10, exact=True)
    again = await store.search((name,), embedding=_vector(3), limit=3, metadata_filter={"kind": "fact"})
    newest = await store.search((name,))
    embeddings = [await store.get_embeddings((name, "b"), str(number)) for number in range(2, 6)]
    return (
        [
            (hit.item.namespace, hit.item.key, hit.item.value, hit.item.metadata, round(hit.score, 6))
            for hit in [*hits, *again]
        ],
        sorted((hit.item.key, str(hit.item.value), hit.item.version) for hit in newest),
        [[round(one, 4) for one in vector] for found in embeddings for vector in found],
        await store.get((name, "a"), "first"),
        [await store.get((name, "b"), str(number)) for number in range(2, 6)],
    )


async def _inspect_memory(inspector: Inspector, name: str) -> object:
    rows = await inspector.items((name, "a"))
    view = await inspector.item((name, "a"), "first")
    assert view is not None
    return view.value, [row.preview for row in rows.items]


async def _fill_states(store: AnyStore, name: str) -> None:
    for turn in range(1, 5):
        messages = [{"role": "user", "content": text(name, number)} for number in range(turn)]
        await store.save(name, {"messages": messages, "turn": turn}, str(turn), {"turn": turn})


async def _read_states(store: AnyStore, name: str) -> object:
    return await store.load(name), [await store.load(name, str(turn)) for turn in range(1, 5)]


async def _inspect_states(inspector: Inspector, name: str) -> object:
    await inspector.threads("dicts")
    view = await inspector.state("dicts", name)
    assert view is not None
    assert view.damage is None
    return view.state


async def _fill_current(store: AnyStore, name: str) -> None:
    for turn in range(1, 3):  # the second one replaces the first
        await store.save(name, {"text": text(name, turn)})
    for other in range(3, 6):
        await store.save(f"{name} {other}", {"text": text(name, other)})


async def _read_current(store: AnyStore, name: str) -> object:
    return await store.load(name), [await store.load(f"{name} {other}") for other in range(3, 6)]


async def _inspect_current(inspector: Inspector, name: str) -> object:
    await inspector.threads("current")
    view = await inspector.state("current", name)
    assert view is not None
    assert view.damage is None
    return view.state


SAMPLES = {
    sample.family: sample
    for sample in (
        Sample("dicts", (CheckpointStore, SyncCheckpointStore), _fill_states, _read_states, _inspect_states, 4),
        Sample("current", (MySQLBackend, SyncMySQLBackend), _fill_current, _read_current, _inspect_current, 4),
        Sample(
            "transcripts",
            (TranscriptStore, SyncTranscriptStore),
            _fill_transcript,
            _read_transcript,
            _inspect_transcript,
            6,
        ),
        Sample(
            "memories",
            (
                partial(MemoryStore, dims=32, vector_cache_bytes=0),
                partial(SyncMemoryStore, dims=32, vector_cache_bytes=0),
            ),
            _fill_memory,
            _read_memory,
            _inspect_memory,
            10,
        ),
        Sample(
            "graphs",
            (MySQLCheckpointSaver, SyncMySQLCheckpointSaver),
            _fill_graph,
            _read_graph,
            _inspect_graph,
            10,
        ),
        Sample(
            "working",
            (partial(_Sessions, WorkingMemory), partial(_Sessions, SyncWorkingMemory)),
            _fill_session,
            _read_session,
            _inspect_session,
            9,
        ),
    )
}
