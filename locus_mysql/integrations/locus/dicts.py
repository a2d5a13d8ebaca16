"""The states of Locus agents as dicts, by who has no Locus: `AgentDicts`, in the tables of `MySQLCheckpointer`.

Agents that save and load there and agents that come here go on with each other's threads; searches find what either
said. So all that `LocusOperations` reads off a state is read off the dict here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isinf
from typing import Any, Self, TypeVar

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...errors import CheckpointExists, InvalidInput
from ...families.checkpoints.coding.delta import Delta
from ...families.checkpoints.new import NewCheckpoint, ParentRule
from ...families.checkpoints.rows import as_sql_time
from ...families.checkpoints.searchable import joined
from ...families.checkpoints.store import State, StoreOperations
from ...runtime.arguments import check_checkpoint_id, check_tenant, encode_metadata
from ...runtime.database import Database
from ...runtime.exact_json import decode_json
from ...runtime.methods import awaited
from ...runtime.stores import AsyncStore

M = TypeVar("M")

#: Where a Locus run lists the saves of its turn that the turn's last save will supersede and delete. From
#: ``locus.agent.runtime_loop.ITERATION_CHECKPOINTS_KEY`` of locus-sdk 3.0.1. Should another version use another name,
#: those saves would be stored as lasting ones.
ITERATION_CHECKPOINTS_KEY = "_locus_iteration_checkpoints"

#: Where a message has the time of its first save: ``locus.memory.retention.MESSAGE_TIME_KEY`` of locus-sdk 3.0.1.
MESSAGE_TIME_KEY = "locus_at"

#: A stamp from before or after counts as these: it may be anything, and the server knows fewer times than Python.
FIRST_TIME, LAST_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


class AgentDictOperations(StoreOperations):
    """The operations of `CheckpointStore`, on the states of Locus agents.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config, "agents")

    def of_tenant(self, tenant: str) -> Self:
        """The same for another tenant. What the process remembers of threads is shared, and kept apart by tenant."""
        other = copy.copy(self)
        other._tenant = check_tenant(tenant)
        return other

    def new(self, data: State, checkpoint_id: str | None, metadata: object) -> NewCheckpoint:
        """What to save for a state that JSON can hold. One that is no agent's is searched as a plain one."""
        new = super().new(data, checkpoint_id, metadata)
        messages = data.get("messages")
        if not isinstance(messages, list):
            return new

        def text(delta: Delta) -> tuple[str, bool]:
            added, continues = what_is_added(messages, delta)
            return joined(said(added)), continues

        opened = opened_at(messages)
        return replace(
            new,
            search_text=text,
            provisional=is_provisional(data, checkpoint_id),
            oldest_at=None if opened is None else as_sql_time(opened),
        )

    def prepared(
        self, data: State, checkpoint_id: str, metadata: object = None, parent_id: str | None = None
    ) -> NewCheckpoint:
        """What `save_once` saves, checked and encoded: what takes long of a large state. For any thread of Python's.

        Args:
            data: The state, a dict of what JSON can hold exactly.
            checkpoint_id: 1 to 128 characters.
            metadata: A dict of JSON values for queries, at most 65,536 bytes as JSON.
            parent_id: The checkpoint that it goes on from; the thread's newest if None. What this process loaded does
                not matter: the client may have asked another one.

        Raises:
            InvalidInput: The state cannot be stored exactly.
        """
        parent = ParentRule.NEWEST if parent_id is None else check_checkpoint_id(parent_id)
        new = replace(self.new(data, check_checkpoint_id(checkpoint_id), metadata), must_be_new=True, parent=parent)
        encoded = new.encode(None).state
        texts = (encoded.head, *(log.text for log in encoded.logs))
        if any(b"Infinity" in text for text in texts) and holds_infinity(data):
            raise InvalidInput("The state holds a number that is larger than any that can be stored; keep it as text.")
        return new

    def save_once(self, thread_id: str, new: NewCheckpoint) -> Operation[str]:
        """Save a state as the newest checkpoint of a thread, unless it is there already. One round trip.

        A call that is repeated changes nothing, whatever was saved in between: the checkpoint stays where it is among
        the others. That is told by what it holds, so there is no limit to how much later it may be. If the id has
        another state or other metadata, it moves to this state, as with `CheckpointStore`.

        Args:
            thread_id: 1 to 512 characters, any but NUL; compared by code point.
            new: What `prepared` made of the state.

        Returns:
            The checkpoint's id.

        Raises:
            ParentMissing: The thread has no checkpoint of the id that was named as the parent.
            InvalidInput: An argument cannot be stored exactly.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        try:
            return (yield from self.checkpoints.save(self._tenant, thread_id, new))
        except CheckpointExists:
            pass
        checkpoint_id = check_checkpoint_id(new.checkpoint_id)
        if (yield from self._has(thread_id, checkpoint_id, new)):
            return checkpoint_id
        return (yield from self.checkpoints.save(self._tenant, thread_id, replace(new, must_be_new=False)))

    def _has(self, thread_id: str, checkpoint_id: str, new: NewCheckpoint) -> Operation[bool]:
        """Whether a checkpoint holds this very state and metadata."""
        found = yield from self.checkpoints.load(self._tenant, thread_id, checkpoint_id)
        if found is None or canonical(found.text()) != canonical(new.encode(None).state.text()):
            return False
        info = yield from self.checkpoints.get_metadata(self._tenant, thread_id, checkpoint_id)
        text, _ = encode_metadata(new.metadata)
        return info is not None and canonical_value(info["metadata"]) == canonical((text or "{}").encode())

    def load_text(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bytes | None]:
        """The state of a checkpoint, or of a thread's newest, as JSON text; None if there is none.

        Raises:
            CorruptCheckpoint: One of its rows was changed or is gone.
        """
        found = yield from self.checkpoints.load(self._tenant, thread_id, checkpoint_id)
        return None if found is None else found.text()


class AgentDicts(AsyncStore[AgentDictOperations]):
    """The threads of Locus agents, for one tenant, as dicts and as JSON text. Needs no Locus.

    Args:
        operations: The operations, for the tenant.
        database: Where.
    """

    def __init__(self, operations: AgentDictOperations, database: Database) -> None:
        super().__init__(operations, database, owned=False)

    def prepared(
        self, data: State, checkpoint_id: str, metadata: object = None, parent_id: str | None = None
    ) -> NewCheckpoint:
        """See `AgentDictOperations.prepared`."""
        return self._operations.prepared(data, checkpoint_id, metadata, parent_id)

    @awaited(AgentDictOperations.save_once)
    def save_once(self) -> None: ...
    @awaited(AgentDictOperations.load_text)
    def load_text(self) -> None: ...
    @awaited(AgentDictOperations.exists)
    def exists(self) -> None: ...
    @awaited(AgentDictOperations.delete)
    def delete(self) -> None: ...
    @awaited(AgentDictOperations.list_checkpoints)
    def list_checkpoints(self) -> None: ...
    @awaited(AgentDictOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @awaited(AgentDictOperations.get_metadata)
    def get_metadata(self) -> None: ...
    @awaited(AgentDictOperations.query_by_metadata)
    def query_by_metadata(self) -> None: ...
    @awaited(AgentDictOperations.search)
    def search(self) -> None: ...
    @awaited(AgentDictOperations.vacuum)
    def vacuum(self) -> None: ...


def what_is_added(messages: Sequence[M], delta: Delta) -> tuple[Sequence[M], bool]:
    """The messages of a state that its parent does not have; and whether the parent's go on."""
    continues = "messages" in delta.news
    return messages[delta.news["messages"] if continues else 0 :], continues


def said(messages: Sequence[Any]) -> Iterator[str]:
    """What messages say, without the system's."""
    for message in messages:
        if isinstance(message, dict) and message.get("role") != "system":
            content = message.get("content")
            if isinstance(content, str) and content:
                yield content


def is_provisional(state: State, checkpoint_id: str | None) -> bool:
    """Whether a Locus run will supersede and delete this save."""
    metadata = state.get("metadata")
    superseded = metadata.get(ITERATION_CHECKPOINTS_KEY) if isinstance(metadata, dict) else None
    return checkpoint_id is not None and isinstance(superseded, list) and checkpoint_id in superseded


def opened_at(messages: Sequence[Any]) -> datetime | None:
    """When the first exchange of a conversation began, by the stamp of its first message; None if it has none."""
    first = next((one for one in messages if not isinstance(one, dict) or one.get("role") != "system"), None)
    metadata = first.get("metadata") if isinstance(first, dict) else None
    stamp = metadata.get(MESSAGE_TIME_KEY) if isinstance(metadata, dict) else None
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return min(max(moment, FIRST_TIME), LAST_TIME)


def holds_infinity(value: Any) -> bool:
    """Whether a number somewhere in a value is infinite: JSON's numbers may be larger than any float."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, float) and isinf(one):
            return True
        if isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list):
            pending.extend(one)
    return False


def canonical(text: bytes) -> str:
    """JSON text so that equal values, and only these, have equal texts: the order of an object's names says nothing."""
    return canonical_value(decode_json(text))


def canonical_value(value: Any) -> str:
    """The same of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
