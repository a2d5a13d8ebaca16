"""Copying checkpoints from any LangGraph saver into another: `copy_checkpoints` and `acopy_checkpoints`.

For people who come from PostgreSQL, SQLite or memory. Only the public methods of both savers are used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, PendingWrite

T = TypeVar("T")

#: Checkpoints between two lines of progress.
_PROGRESS_EVERY = 500


@dataclass(slots=True)
class CopySummary:
    """What a copy did.

    Args:
        threads: Threads that were found.
        copied: Checkpoints that were copied, and read back as they are in the source.
        present: Checkpoints that were there already, and the same.
        differing: Configs of checkpoints that are not the same in the target as in the source.
        changed: Threads in which the source has other checkpoints, or more writes, than when they were copied; also
            threads that came or went meanwhile. Copy again when the source is quiet.
    """

    threads: int
    copied: int
    present: int
    differing: list[RunnableConfig]
    changed: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the target has all that the source had at the end of the copy."""
        return not self.differing and not self.changed

    def __str__(self) -> str:
        parts = [f"{self.threads} threads: {self.copied} checkpoints copied and read back"]
        if self.present:
            parts.append(f"{self.present} there already")
        if self.differing:
            parts.append(f"{len(self.differing)} not the same as in the source")
        if self.changed:
            parts.append(f"{len(self.changed)} threads were written to in the source meanwhile")
        return ", ".join(parts) + "."


def copy_checkpoints(
    source: BaseCheckpointSaver[Any],
    target: BaseCheckpointSaver[Any],
    *,
    thread_ids: Iterable[str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> CopySummary:
    """Copy threads with all their checkpoints and writes. May be repeated: what is there already is passed over.

    Args:
        source: Any saver; it is only read.
        target: Any saver.
        thread_ids: The threads to copy; all that the source lists if None.
        tell: Told of progress.
    """
    copying = _copy(source, target, thread_ids, tell)
    answer: Any = None
    while True:
        try:
            call = copying.send(answer)
        except StopIteration as done:
            return cast(CopySummary, done.value)
        answer = getattr(call.saver, call.method)(*call.arguments)
        if call.method == "list":
            answer = [call.keep(found) for found in answer]


async def acopy_checkpoints(
    source: BaseCheckpointSaver[Any],
    target: BaseCheckpointSaver[Any],
    *,
    thread_ids: Iterable[str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> CopySummary:
    """`copy_checkpoints` with the asynchronous methods of both savers."""
    copying = _copy(source, target, thread_ids, tell)
    answer: Any = None
    while True:
        try:
            call = copying.send(answer)
        except StopIteration as done:
            return cast(CopySummary, done.value)
        begun = getattr(call.saver, f"a{call.method}")(*call.arguments)
        answer = [call.keep(found) async for found in begun] if call.method == "list" else await begun


class _Call(NamedTuple):
    """A method to call, by its synchronous name; of what `list` gives, only what ``keep`` makes of it is kept."""

    saver: BaseCheckpointSaver[Any]
    method: str
    arguments: tuple[Any, ...]
    keep: Callable[[CheckpointTuple], Any] = lambda found: found


_Copying: TypeAlias = Generator[_Call, Any, T]


class _Listed(NamedTuple):
    """A checkpoint of the source, without its values."""

    checkpoint_id: str
    config: RunnableConfig
    mark: int


def _copy(
    source: BaseCheckpointSaver[Any],
    target: BaseCheckpointSaver[Any],
    thread_ids: Iterable[str] | None,
    tell: Callable[[str], None],
) -> _Copying[CopySummary]:
    summary = CopySummary(0, 0, 0, [])
    named = None if thread_ids is None else list(thread_ids)
    if named is None:
        found = yield _Call(source, "list", (None,), _thread_of)
        chosen = list(dict.fromkeys(found))[::-1]  # the one saved to last comes first, and is saved to last again
    else:
        chosen = named
    marks: dict[str, int] = {}
    for thread_id in chosen:
        summary.threads += 1
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        listed: list[_Listed] = yield _Call(source, "list", (config,), _listed)
        marks[thread_id] = sum(one.mark for one in listed)
        for one in sorted(listed, key=lambda one: one.checkpoint_id):
            yield from _copy_one(source, target, one.config, summary)
            if (summary.copied + summary.present) % _PROGRESS_EVERY == 0:
                tell(f"{summary.copied + summary.present} checkpoints of {summary.threads} threads …")
    summary.changed = yield from _changed(source, named, marks)
    return summary


def _changed(
    source: BaseCheckpointSaver[Any], named: Sequence[str] | None, marks: dict[str, int]
) -> _Copying[list[str]]:
    """The threads of which the source now has something else than was copied.

    Args:
        source: The source.
        named: The threads that were to be copied; None for all.
        marks: What was copied of each thread.
    """
    now: dict[str, int] = {}
    configs: list[RunnableConfig | None] = [None]
    if named is not None:
        configs = [{"configurable": {"thread_id": thread_id}} for thread_id in named]
    for config in configs:
        for thread_id, mark in (yield _Call(source, "list", (config,), lambda one: (_thread_of(one), _mark_of(one)))):
            now[thread_id] = now.get(thread_id, 0) + mark
    return [one for one in dict.fromkeys((*marks, *now)) if marks.get(one, 0) != now.get(one, 0)]


def _thread_of(found: CheckpointTuple) -> str:
    return cast(str, found.config["configurable"]["thread_id"])


def _mark_of(found: CheckpointTuple) -> int:
    """A number that tells a checkpoint, and how many writes it has, from others."""
    place = found.config["configurable"]
    return hash((place.get("checkpoint_ns", ""), found.checkpoint["id"], len(found.pending_writes or [])))


def _copy_one(
    source: BaseCheckpointSaver[Any],
    target: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    summary: CopySummary,
) -> _Copying[None]:
    original: CheckpointTuple | None = yield _Call(source, "get_tuple", (config,))
    if original is None:  # deleted meanwhile
        return
    there: CheckpointTuple | None = yield _Call(target, "get_tuple", (config,))
    if there is not None and same_tuple(source, original, there):
        summary.present += 1
        return
    parent = None
    if original.parent_config is not None:
        parent = yield _Call(source, "get_tuple", (original.parent_config,))
    yield _Call(target, "put", _put_arguments(original, parent))
    for writes, task_id, task_path in _grouped(original.pending_writes or []):
        yield _Call(target, "put_writes", (original.config, writes, task_id, task_path))
    copied: CheckpointTuple | None = yield _Call(target, "get_tuple", (config,))
    if copied is not None and same_tuple(source, original, copied):
        summary.copied += 1
    else:
        summary.differing.append(config)


def same_tuple(saver: BaseCheckpointSaver[Any], one: CheckpointTuple, other: CheckpointTuple) -> bool:
    """Whether two checkpoints are the same, with metadata, parent and writes.

    Args:
        saver: Its serialiser compares values that do not compare by themselves.
        one: A checkpoint.
        other: Another one.
    """

    def parts(found: CheckpointTuple) -> tuple[Any, ...]:
        parent = None if found.parent_config is None else found.parent_config["configurable"].get("checkpoint_id")
        return dict(found.checkpoint), dict(found.metadata), parent, list(found.pending_writes or [])

    if parts(one) == parts(other):
        return True
    return saver.serde.dumps_typed(parts(one)) == saver.serde.dumps_typed(parts(other))


def _listed(found: CheckpointTuple) -> _Listed:
    return _Listed(found.checkpoint["id"], found.config, _mark_of(found))


def _put_arguments(original: CheckpointTuple, parent: CheckpointTuple | None) -> tuple[Any, ...]:
    """What to call ``put`` with: the parent's config, and the versions that are not the parent's."""
    place = original.config["configurable"]
    configurable = {"thread_id": place["thread_id"], "checkpoint_ns": place.get("checkpoint_ns", "")}
    if original.parent_config is not None:
        configurable["checkpoint_id"] = original.parent_config["configurable"]["checkpoint_id"]
    before = {} if parent is None else parent.checkpoint["channel_versions"]
    versions = original.checkpoint["channel_versions"]
    changed = {name: version for name, version in versions.items() if before.get(name) != version}
    return {"configurable": configurable}, original.checkpoint, original.metadata, changed


def _grouped(writes: Sequence[PendingWrite]) -> list[tuple[list[tuple[str, Any]], str, str]]:
    """Writes as ``put_writes`` takes them: by task, special ones apart, as they have an index of their own.

    A saver gives writes in the order in which they are applied, which it tells from paths that it does not give. Where
    the order is not that of the tasks' ids, paths are made up that keep it.
    """
    tasks: dict[str, list[PendingWrite]] = {}
    for write in writes:
        tasks.setdefault(write[0], []).append(write)
    in_order = list(tasks) == sorted(tasks)
    groups = []
    for place, (task_id, group) in enumerate(tasks.items()):
        path = "" if in_order else f"{place:08}"
        for special in (False, True):
            chosen = [(channel, value) for _, channel, value in group if (channel in WRITES_IDX_MAP) is special]
            if chosen:
                groups.append((chosen, task_id, path))
    return groups
