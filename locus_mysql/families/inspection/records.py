"""Records that the inspector returns about threads and sessions: plain values, the same for every family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

from ...records.log_digests import Mark

T = TypeVar("T")

#: Metadata of a field that is left out of the JSON output.
NOT_SHOWN: Mapping[str, bool] = {"shown": False}


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list.

    Attributes:
        items: The entries.
        cursor: The cursor of the next page, an opaque text; None if this is the last one.
    """

    items: Sequence[T]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread in a list.

    Attributes:
        family: Its family.
        thread_id: Its id.
        created_at: When it was first saved.
        updated_at: When it was last saved.
        checkpoints: Number of its named checkpoints.
        size_bytes: Size of its rows on the server, without indexes.
        checkpoint_id: Its newest checkpoint.
        metadata: That checkpoint's metadata.
        damage: What cannot be read, and what to do; None if no damage is known.
    """

    family: str
    thread_id: str
    created_at: datetime
    updated_at: datetime
    checkpoints: int
    size_bytes: int
    checkpoint_id: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint in its thread's history.

    Attributes:
        namespace: The checkpoint namespace of a graph; empty elsewhere.
        checkpoint_id: Its id.
        parent_id: Its parent; None for the first checkpoint, and if the parent was deleted.
        created_at: When it was saved.
        size_bytes: Size of its row.
        metadata: Its metadata.
        damage: What cannot be read, and what to do; None if no damage is known.
    """

    namespace: str
    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    size_bytes: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, with its result if that is known.

    Attributes:
        call_id: Its id, which its result refers to.
        name: The tool.
        arguments: Its arguments, JSON.
        result: Its result, as text; None if unknown.
        error: The error, as text; None without one.
    """

    call_id: str | None
    name: str
    arguments: Any
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation.

    Attributes:
        role: ``user``, ``assistant``, ``system``, ``tool``, or another role that the state has.
        text: Its text; empty without one.
        at: Its time, if the state has one.
        tool_calls: The tool calls that it requests.
        raw: The whole message as stored, JSON.
    """

    role: str
    text: str
    at: datetime | None
    tool_calls: Sequence[ToolCall]
    raw: Any


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write of a graph's task that no checkpoint contains yet."""

    task_id: str
    channel: str
    value: Any


#: A thread waits for a person; it failed; its run has more to do; its last run is over.
StatusName: TypeAlias = Literal["waiting", "failed", "unfinished", "done"]


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    """The status of a thread.

    Attributes:
        name: The status.
        reason: The question that it waits for, its error, or what it does next; empty if unknown.
    """

    name: StatusName
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ThreadPreview:
    """What a list shows of a thread's content, as far as it could be read cheaply.

    Attributes:
        status: Its status.
        first: Its first message, of a user if there is one.
        last: Its last message with a text or calls.
    """

    status: ThreadStatus | None = None
    first: Message | None = None
    last: Message | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a long conversation.

    Attributes:
        count: The maximum number of messages to return.
        first: The position of the first one, from 0; None for the last messages.
    """

    count: int
    first: int | None = None

    def range_in(self, count: int) -> range:
        """Return the positions of the messages in a list of this length."""
        first = max(0, count - self.count) if self.first is None else min(self.first, count)
        return range(first, min(first + self.count, count))


class StoredList(NamedTuple):
    """A list as stored: the bytes of its items, and their number."""

    text: bytes
    item_count: int


@dataclass(frozen=True, slots=True)
class StateView:
    """A state at a checkpoint.

    Attributes:
        family: The family of the thread.
        thread_id: The thread.
        checkpoint: The checkpoint.
        messages: The conversation, oldest first; empty if the state has none that can be recognised.
        state: The whole state as JSON values. A text describes each value that JSON lacks.
        writes: The pending writes of a graph's tasks.
        damage: Why the state cannot be read, and what to do; it is empty then. None if it can be read.
        before: Number of messages before ``messages``, if only a part of a long conversation was requested.
        after: Number of messages after them.
        stored: Lists of a graph's state as stored, to be compared with those of other checkpoints.
        status: What the thread was doing at the checkpoint; None if nothing shows it.
    """

    family: str
    thread_id: str
    checkpoint: CheckpointRow
    messages: Sequence[Message]
    state: Mapping[str, Any]
    writes: Sequence[PendingWrite] = ()
    damage: str | None = None
    before: int = field(default=0, metadata=NOT_SHOWN)
    after: int = field(default=0, metadata=NOT_SHOWN)
    stored: Mapping[str, StoredList] = field(default_factory=dict, metadata=NOT_SHOWN, repr=False)
    status: ThreadStatus | None = field(default=None, metadata=NOT_SHOWN)


@dataclass(frozen=True, slots=True)
class Turn:
    """The numbers of a checkpoint's state, for charts over a thread's turns; None for a number that it lacks.

    Attributes:
        checkpoint_id: The checkpoint.
        created_at: When it was saved.
        confidence: The agent's confidence, from 0 to 1.
        tokens: Tokens used so far.
        iterations: Iterations of the agent so far.
        parent_id: Its parent, if that is among the turns.
        begins: Whether it has no parent.
        lists: The marks of its lists, as far as known: length of the text, number of items, and digest.
        node: The nodes of a graph that ran before it, or the source of its state; empty elsewhere.
        note: What it changed, in a few words; empty if unknown.
        seconds: How long the nodes ran; None if unknown.
    """

    checkpoint_id: str
    created_at: datetime
    confidence: float | None
    tokens: int | None
    iterations: int | None
    parent_id: str | None = None
    begins: bool = False
    lists: Mapping[str, Mark] = field(default_factory=dict)
    node: str = ""
    note: str = ""
    seconds: float | None = None


Change: TypeAlias = Literal["same", "added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class MessageChange:
    """The change of a message between two checkpoints.

    Attributes:
        change: The kind of change.
        before: The message in the first; None if it was added.
        after: The message in the second; None if it was removed.
    """

    change: Change
    before: Message | None
    after: Message | None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The change of a field of the state. Messages are not fields.

    Attributes:
        path: Its path, such as ``metadata.goal`` or ``tool_executions[2].result``.
        change: The kind of change; never ``same``.
        before: Its value in the first, JSON; None if it was added.
        after: Its value in the second, JSON; None if it was removed.
    """

    path: str
    change: Change
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between two checkpoints of a thread.

    Attributes:
        thread_id: The thread.
        before: The first.
        after: The second.
        messages: The change of each message, including unchanged ones.
        fields: The changed fields.
        cut: Whether more fields changed than ``fields`` contains.
        coarse: Whether too much changed to compare everything, so that some changes are given as removed and added, or
            as those of a whole list or object.
    """

    thread_id: str
    before: CheckpointRow
    after: CheckpointRow
    messages: Sequence[MessageChange]
    fields: Sequence[FieldChange]
    cut: bool = False
    coarse: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A checkpoint whose messages contain the words of a search.

    Attributes:
        family: The family of the thread.
        thread_id: The thread.
        checkpoint_id: The checkpoint that added the text.
        snippet: The text around the words.
        score: Its relevance, comparable within one search only.
        created_at: When it was saved.
    """

    family: str
    thread_id: str
    checkpoint_id: str
    snippet: str
    score: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Tagged:
    """A checkpoint found by its metadata.

    Attributes:
        family: The family of the thread.
        thread_id: The thread.
        checkpoint: The checkpoint; without its parent's id.
    """

    family: str
    thread_id: str
    checkpoint: CheckpointRow


@dataclass(frozen=True, slots=True)
class Day:
    """The threads and checkpoints of a day, in UTC, that still exist.

    Attributes:
        day: The day, as ``2026-11-22``.
        threads: Number of threads created.
        checkpoints: Number of checkpoints saved.
        size_bytes: Their size.
    """

    day: str
    threads: int
    checkpoints: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LargeThread:
    """One of the largest threads.

    Attributes:
        thread: The thread.
        bytes_per_day: Its growth: its size divided by the days between its first and its last save; None if there is
            less than a day between them.
    """

    thread: ThreadRow
    bytes_per_day: float | None

    @classmethod
    def of(cls, thread: ThreadRow) -> Self:
        """Return a thread with its growth."""
        days = (thread.updated_at - thread.created_at) / timedelta(days=1)
        return cls(thread, thread.size_bytes / days if days >= 1 else None)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a tenant's threads in a family.

    Attributes:
        family: The family.
        threads: Number of threads.
        checkpoints: Number of their checkpoints.
        size_bytes: Their size on the server, without indexes.
        whole_bytes: The size if every checkpoint were stored whole; None if it cannot be estimated.
        days: Those of the last 30 days on which a checkpoint was saved, oldest first.
        largest: The largest threads, largest first. With a sample: the largest of the sample and of the threads with
            the most saves.
        sampled: Number of threads in the sample from which checkpoints, sizes and days are estimated; None if they
            are exact. ``whole_bytes`` is an estimate if there are more than 200 checkpoints.
    """

    family: str
    threads: int
    checkpoints: int
    size_bytes: int
    whole_bytes: int | None
    days: Sequence[Day]
    largest: Sequence[LargeThread]
    sampled: int | None = None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session of working memory in a list.

    Attributes:
        session_id: Its id.
        created_at: When it was created.
        updated_at: When it was last used, if the storage records it.
        expires_at: When it expires; None if never.
        variables: Number of its variables.
        size_bytes: Their size, as the session's limits count it.
        task: Its task state, in a list; None without one, or if it is large or damaged.
    """

    session_id: str
    created_at: datetime | None
    updated_at: datetime | None
    expires_at: datetime | None
    variables: int
    size_bytes: int
    task: Mapping[str, Any] | None = field(default=None, metadata=NOT_SHOWN)


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session of working memory: its variables, task state, notes and checkpoints."""

    session: SessionRow
    variables: Mapping[str, Any]
    task_state: Mapping[str, Any] | None
    scratchpad: Sequence[str]
    checkpoints: Sequence[Mapping[str, Any]]
