"""What looking inside finds: plain values, the same for every family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from ..families.checkpoints.coding.digests import Mark

T = TypeVar("T")

#: Of a field that does not belong to what is shown as JSON.
NOT_SHOWN: Mapping[str, bool] = {"shown": False}

#: The families that hold threads: Locus agents, plain dicts, the newest states of `MySQLBackend`, LangGraph's graphs.
ThreadFamily: TypeAlias = Literal["agents", "dicts", "current", "versions"]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of what there is, in its order.

    Attributes:
        items: The entries.
        cursor: What to ask for the next page with, an opaque text; None if this is the last one.
    """

    items: Sequence[T]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread in a list.

    Attributes:
        family: Which family it is of.
        thread_id: Its id.
        created_at: When it was first saved.
        updated_at: When it was last saved.
        checkpoints: How many named checkpoints it has.
        size_bytes: What its rows take on the server, indexes left out.
        checkpoint_id: Its newest checkpoint.
        metadata: That checkpoint's metadata.
        damage: What cannot be read of it, and what to do; None if nothing is known to be damaged.
    """

    family: ThreadFamily
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
        parent_id: What it continues; None for a beginning, and for one whose parent was deleted.
        created_at: When it was saved.
        size_bytes: What its row takes.
        metadata: Its metadata.
        damage: What cannot be read of it, and what to do; None if nothing is known to be damaged.
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
    """A call of a tool, with what came of it if that is known.

    Attributes:
        call_id: Its id, by which its result is found.
        name: The tool.
        arguments: What it was called with, JSON.
        result: What it returned, as text; None if nothing is known of it.
        error: What went wrong, as text.
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
        role: ``user``, ``assistant``, ``system``, ``tool``, or what else the state says.
        text: What was said; empty if there was no text.
        at: When, if the state says so.
        tool_calls: The calls of tools that it asks for.
        raw: All that the state holds of it, JSON.
    """

    role: str
    text: str
    at: datetime | None
    tool_calls: Sequence[ToolCall]
    raw: Any


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write of a graph's task that no checkpoint has taken up."""

    task_id: str
    channel: str
    value: Any


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a long conversation.

    Attributes:
        count: At most this many messages.
        first: The place of the first one, from 0; None for the last messages.
    """

    count: int
    first: int | None = None

    def places(self, count: int) -> range:
        """The places of the messages in a list of this length."""
        first = max(0, count - self.count) if self.first is None else min(self.first, count)
        return range(first, min(first + self.count, count))


class StoredList(NamedTuple):
    """A list as it is stored: the bytes of its items, and how many they are."""

    text: bytes
    item_count: int


@dataclass(frozen=True, slots=True)
class StateView:
    """A state as it was at a checkpoint.

    Attributes:
        family: Which family the thread is of.
        thread_id: The thread.
        checkpoint: The checkpoint.
        messages: The conversation, oldest first; empty if the state holds none that can be recognised.
        state: All of the state as JSON values; what is not JSON stands as text that says what it is.
        writes: Of a graph, what its tasks wrote since.
        damage: Why the state cannot be read, and what to do: then it is shown as empty; None if it can.
        before: Messages before those of ``messages``, where only a part of a long conversation was asked for.
        after: Messages behind them.
        stored: Lists of a graph's state as they are stored, to be compared with those of other checkpoints.
    """

    family: ThreadFamily
    thread_id: str
    checkpoint: CheckpointRow
    messages: Sequence[Message]
    state: Mapping[str, Any]
    writes: Sequence[PendingWrite] = ()
    damage: str | None = None
    before: int = field(default=0, metadata=NOT_SHOWN)
    after: int = field(default=0, metadata=NOT_SHOWN)
    stored: Mapping[str, StoredList] = field(default_factory=dict, metadata=NOT_SHOWN, repr=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the state of a checkpoint says in numbers, for charts over a thread's turns; None where it says nothing.

    Attributes:
        checkpoint_id: The checkpoint.
        created_at: When it was saved.
        confidence: How sure the agent is, from 0 to 1.
        tokens: Tokens used so far.
        iterations: Iterations of the agent so far.
        parent_id: The checkpoint that it goes on from, if that is told of as well.
        begins: Whether it goes on from none.
        lists: What its lists are told by, as far as it is known: how long their text is, how many items they have, and
            a digest.
    """

    checkpoint_id: str
    created_at: datetime
    confidence: float | None
    tokens: int | None
    iterations: int | None
    parent_id: str | None = None
    begins: bool = False
    lists: Mapping[str, Mark] = field(default_factory=dict)


Change: TypeAlias = Literal["same", "added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class MessageChange:
    """What became of a message between two checkpoints.

    Attributes:
        change: What happened.
        before: The message in the first; None if it was added.
        after: The message in the second; None if it was removed.
    """

    change: Change
    before: Message | None
    after: Message | None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """What became of a field of the state, messages left out.

    Attributes:
        path: Where it stands, such as ``metadata.goal`` or ``tool_executions[2].result``.
        change: What happened; never ``same``.
        before: Its value in the first, JSON; None if it was added.
        after: Its value in the second, JSON; None if it was removed.
    """

    path: str
    change: Change
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two checkpoints of a thread.

    Attributes:
        thread_id: The thread.
        before: The first.
        after: The second.
        messages: What became of each message, those that stayed the same among them.
        fields: Which fields changed.
        cut: Whether more fields changed than are told.
        coarse: Whether so much changed that not all was compared, and some changes are given as removed and added.
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
    """Where words were said.

    Attributes:
        family: Which family the thread is of.
        thread_id: The thread.
        checkpoint_id: The checkpoint that added the text.
        snippet: The text around the words.
        score: How well it fits, comparable within one search only.
        created_at: When it was saved.
    """

    family: ThreadFamily
    thread_id: str
    checkpoint_id: str
    snippet: str
    score: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Tagged:
    """A checkpoint found by its metadata.

    Attributes:
        family: Which family the thread is of.
        thread_id: The thread.
        checkpoint: The checkpoint; its parent is not looked for.
    """

    family: ThreadFamily
    thread_id: str
    checkpoint: CheckpointRow


@dataclass(frozen=True, slots=True)
class Day:
    """What was saved on a day, in UTC, of what is still there.

    Attributes:
        day: The day, as ``2026-11-22``.
        threads: How many threads began.
        checkpoints: How many checkpoints were saved.
        size_bytes: What they take.
    """

    day: str
    threads: int
    checkpoints: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LargeThread:
    """A thread that takes much.

    Attributes:
        thread: The thread.
        bytes_per_day: How fast it grows: its bytes over its life so far, at least an hour of it.
    """

    thread: ThreadRow
    bytes_per_day: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a tenant keeps in a family.

    Attributes:
        family: Which family.
        threads: How many threads there are.
        checkpoints: How many checkpoints they have.
        size_bytes: What they take on the server, indexes left out.
        whole_bytes: What they would take if every checkpoint were stored whole; None if nobody can tell.
        days: Those of the last 30 days on which something was saved, oldest first.
        largest: The largest threads, largest first. Where there is a sample: of those in it, and of those that were
            saved to most often.
        sampled: Of how many threads the checkpoints, the bytes and the days were worked out, so that they are
            estimates; None if of all. ``whole_bytes`` is an estimate wherever there are more than 200 checkpoints.
    """

    family: ThreadFamily
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
        created_at: When it began.
        updated_at: When it was last used, as far as the storage knows.
        expires_at: When it ends by itself; None if never.
        variables: How many variables it holds.
        size_bytes: What they take, as its limits count it.
    """

    session_id: str
    created_at: datetime | None
    updated_at: datetime | None
    expires_at: datetime | None
    variables: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session of working memory: its variables, the state of its task, its notes, its checkpoints."""

    session: SessionRow
    variables: Mapping[str, Any]
    task_state: Mapping[str, Any] | None
    scratchpad: Sequence[str]
    checkpoints: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """A namespace of long-term memory in a list.

    Attributes:
        namespace: Its labels.
        items: How many items it has, those of namespaces below left out.
        size_bytes: What their values take.
        updated_at: When one of them was last written.
    """

    namespace: tuple[str, ...]
    items: int
    size_bytes: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item of long-term memory in a list.

    Attributes:
        namespace: Its namespace.
        key: Its key.
        preview: The beginning of its value, JSON text that may be cut off.
        size_bytes: What value and metadata take.
        version: 1 for a new one, one more with each write.
        created_at: When it was first written.
        updated_at: When it was last written.
        expires_at: When it ends; None if never.
    """

    namespace: tuple[str, ...]
    key: str
    preview: str
    size_bytes: int
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item of long-term memory.

    Attributes:
        item: Its row.
        value: The JSON value; text that says so if it is damaged.
        metadata: Its metadata.
        embeddings: How many embeddings it has.
        dims: How wide they are; None if there are none.
    """

    item: ItemRow
    value: Any
    metadata: Mapping[str, Any]
    embeddings: int
    dims: int | None


@dataclass(frozen=True, slots=True)
class ItemHit:
    """An item of long-term memory that a search found.

    Attributes:
        item: Its row.
        score: How well it fits, comparable within one search only.
    """

    item: ItemRow
    score: float
