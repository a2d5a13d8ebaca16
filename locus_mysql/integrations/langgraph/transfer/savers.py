"""Copies checkpoints from any LangGraph saver to another: `copy_checkpoints` and `acopy_checkpoints`.

For moving from PostgreSQL, SQLite or memory. Only the public methods of both savers are used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol

from ....transfer.engine import Advance, Notify, TransferReport, UnitSource, UnitTarget, run_blocking, transfer

T = TypeVar("T")

Saver: TypeAlias = BaseCheckpointSaver[Any]


def copy_checkpoints(
    source: Saver,
    target: Saver,
    *,
    thread_ids: Iterable[str] | None = None,
    notify: Notify = lambda _: None,
    advance: Advance = lambda *_: None,
) -> TransferReport:
    """Copy threads with all their checkpoints and writes. May be repeated: present checkpoints are skipped.

    Args:
        source: Any saver; it is only read.
        target: Any saver.
        thread_ids: The threads to copy; None means all that the source lists.
        notify: Receives a sentence about each checkpoint that differs in the target, and each thread that changed.
        advance: Called after each thread, with the report and the number of threads, if that is known.
    """
    return run_blocking(_copy(BlockingSaver(source), BlockingSaver(target), thread_ids, notify, advance))


async def acopy_checkpoints(
    source: Saver,
    target: Saver,
    *,
    thread_ids: Iterable[str] | None = None,
    notify: Notify = lambda _: None,
    advance: Advance = lambda *_: None,
) -> TransferReport:
    """`copy_checkpoints` with the asynchronous methods of both savers."""
    return await _copy(AwaitedSaver(source), AwaitedSaver(target), thread_ids, notify, advance)


async def _copy(
    source: AwaitedSaver, target: AwaitedSaver, thread_ids: Iterable[str] | None, notify: Notify, advance: Advance
) -> TransferReport:
    report = TransferReport(notify=notify)
    named = None if thread_ids is None else list(thread_ids)
    return await transfer(SaverThreads(source, named, notify), SaverWriter(source, target), report, advance=advance)


class AwaitedSaver:
    """Calls the asynchronous methods of a saver.

    Args:
        saver: The saver.
    """

    def __init__(self, saver: Saver) -> None:
        self.saver = saver

    async def list(self, config: RunnableConfig | None, of: Callable[[CheckpointTuple], T]) -> list[T]:
        """List checkpoints; of each, only the result of a function is kept in memory."""
        return [of(found) async for found in self.saver.alist(config)]

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method, named by its blocking counterpart."""
        return await cast("Awaitable[Any]", getattr(self.saver, f"a{method}")(*arguments))


class BlockingSaver(AwaitedSaver):
    """Calls the blocking methods of a saver, so that nothing is awaited."""

    async def list(self, config: RunnableConfig | None, of: Callable[[CheckpointTuple], T]) -> list[T]:
        """List checkpoints; of each, only the result of a function is kept in memory."""
        return [of(found) for found in self.saver.list(config)]

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method."""
        return getattr(self.saver, method)(*arguments)


class ListedCheckpoint(NamedTuple):
    """A checkpoint of the source, without its values.

    Args:
        checkpoint_id: Its id.
        config: The config that identifies it.
        mark: A checksum of the checkpoint and the number of its writes.
    """

    checkpoint_id: str
    config: RunnableConfig
    mark: int


class SaverThreads(UnitSource[Sequence[ListedCheckpoint]]):
    """The threads of a saver; a unit is the checkpoints of a thread.

    Args:
        source: The saver.
        named: The threads to read; None means all that it lists.
        notify: Receives a message about each thread that changed meanwhile.
    """

    def __init__(self, source: AwaitedSaver, named: Sequence[str] | None, notify: Notify) -> None:
        self._source = source
        self._named = named
        self._notify = notify
        self._marks: dict[str, int] = {}

    async def open(self) -> int | None:
        """Return the number of threads if they are named; savers cannot count their own."""
        return None if self._named is None else len(self._named)

    async def units(self) -> AsyncGenerator[Sequence[ListedCheckpoint], None]:
        """List the checkpoints of each thread, oldest first."""
        chosen = self._named
        if chosen is None:
            found = await self._source.list(None, _thread_of)
            chosen = list(dict.fromkeys(found))[::-1]  # the thread of the newest checkpoint comes first in the list
        for thread_id in chosen:
            listed = await self._source.list({"configurable": {"thread_id": thread_id}}, _listed)
            self._marks[thread_id] = sum(one.mark for one in listed)
            yield sorted(listed, key=lambda one: one.checkpoint_id)

    async def changed(self) -> int:
        """Return how many threads now have other checkpoints, or another number of writes, than were copied."""
        now: dict[str, int] = {}
        configs: list[RunnableConfig | None] = [None]
        if self._named is not None:
            configs = [{"configurable": {"thread_id": thread_id}} for thread_id in self._named]
        for config in configs:
            for thread_id, mark in await self._source.list(config, lambda one: (_thread_of(one), _mark_of(one))):
                now[thread_id] = now.get(thread_id, 0) + mark
        changed = [one for one in dict.fromkeys((*self._marks, *now)) if self._marks.get(one, 0) != now.get(one, 0)]
        for thread_id in changed:
            self._notify(f"Thread {thread_id!r} was written to in the source meanwhile. Copy it again.")
        return len(changed)


class SaverWriter(UnitTarget[Sequence[ListedCheckpoint]]):
    """Writes the checkpoints of threads to a saver, and reads them again to compare.

    Args:
        source: The saver to read from.
        target: The saver to write to.
    """

    def __init__(self, source: AwaitedSaver, target: AwaitedSaver) -> None:
        self._source = source
        self._target = target

    async def write(self, listed: Sequence[ListedCheckpoint], report: TransferReport) -> None:
        """Copy the checkpoints of a thread, in the order of their ids."""
        report.threads += 1
        if report.dry_run:
            report.copied += len(listed)
            return
        for one in listed:
            await self._write(one, report)

    async def _write(self, one: ListedCheckpoint, report: TransferReport) -> None:
        original: CheckpointTuple | None = await self._source.call("get_tuple", one.config)
        if original is None:  # it was deleted meanwhile
            return
        if await self._has(original, one.config):
            report.present += 1
            return
        parent = None
        if original.parent_config is not None:
            parent = await self._source.call("get_tuple", original.parent_config)
        await self._target.call("put", *_put_arguments(original, parent))
        for writes, task_id, task_path in _grouped(original.pending_writes or []):
            await self._target.call("put_writes", original.config, writes, task_id, task_path)
        if await self._has(original, one.config):
            report.copied += 1
        else:
            report.differ(f"Checkpoint {one.checkpoint_id!r} of thread {_thread_of(original)!r} differs in the target.")

    async def _has(self, original: CheckpointTuple, config: RunnableConfig) -> bool:
        """Return whether the target has an identical checkpoint."""
        found: CheckpointTuple | None = await self._target.call("get_tuple", config)
        return found is not None and same_tuple(self._source.saver, original, found)


def _thread_of(found: CheckpointTuple) -> str:
    return cast(str, found.config["configurable"]["thread_id"])


def _mark_of(found: CheckpointTuple) -> int:
    configurable: Mapping[str, Any] = found.config["configurable"]
    return hash((configurable.get("checkpoint_ns", ""), found.checkpoint["id"], len(found.pending_writes or [])))


def _listed(found: CheckpointTuple) -> ListedCheckpoint:
    return ListedCheckpoint(found.checkpoint["id"], found.config, _mark_of(found))


def same_tuple(saver: BaseCheckpointSaver[Any], one: CheckpointTuple, other: CheckpointTuple) -> bool:
    """Return whether two checkpoints are identical, with metadata, parent and writes.

    Args:
        saver: Its serialiser tells apart what Python takes for equal, such as 1 and True.
        one: A checkpoint.
        other: Another one.
    """

    def parts(found: CheckpointTuple) -> tuple[Any, ...]:
        parent = None if found.parent_config is None else found.parent_config["configurable"].get("checkpoint_id")
        return dict(found.checkpoint), dict(found.metadata), parent, list(found.pending_writes or [])

    return _is_same(saver.serde, parts(one), parts(other))


def _is_same(serde: SerializerProtocol, one: Any, other: Any) -> bool:
    """Return whether two values are written alike, apart from the order of keys and of the elements of sets."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_same(serde, value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(partial(_is_same, serde), one, other))
    if one is None or isinstance(one, str | int | float):
        return repr(one) == repr(other)
    return serde.dumps_typed(one) == serde.dumps_typed(other) or (isinstance(one, set | frozenset) and one == other)


def _put_arguments(original: CheckpointTuple, parent: CheckpointTuple | None) -> tuple[Any, ...]:
    """Return the arguments of ``put``: the parent's config, and the versions that are not the parent's."""
    index = original.config["configurable"]
    configurable = {"thread_id": index["thread_id"], "checkpoint_ns": index.get("checkpoint_ns", "")}
    if original.parent_config is not None:
        configurable["checkpoint_id"] = original.parent_config["configurable"]["checkpoint_id"]
    before = {} if parent is None else parent.checkpoint["channel_versions"]
    versions = original.checkpoint["channel_versions"]
    changed = {name: version for name, version in versions.items() if before.get(name) != version}
    return {"configurable": configurable}, original.checkpoint, original.metadata, changed


def _grouped(writes: Sequence[PendingWrite]) -> list[tuple[list[tuple[str, Any]], str, str]]:
    """Group writes for ``put_writes``: by task, with special writes separate, because they have their own indexes.

    A saver returns writes in the order in which they are applied, which depends on paths that it does not return. Where
    that is not the order of the tasks' ids, other paths are generated that keep it.
    """
    tasks: dict[str, list[PendingWrite]] = {}
    for write in writes:
        tasks.setdefault(write[0], []).append(write)
    in_order = list(tasks) == sorted(tasks)
    groups = []
    for index, (task_id, group) in enumerate(tasks.items()):
        path = "" if in_order else f"{index:08}"
        for special in (False, True):
            chosen = [(channel, value) for _, channel, value in group if (channel in WRITES_IDX_MAP) is special]
            if chosen:
                groups.append((chosen, task_id, path))
    return groups
