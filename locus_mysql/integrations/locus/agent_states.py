"""The state of a Locus agent as a checkpoint: its searchable text and its age; `AgentDicts`; the family `AGENTS`.

Agents save `AgentState` objects; the service and imports save the same states as dicts by `AgentDicts`, even if Locus
is not installed. Both forms are read here, so that either can continue the other's threads and searches find both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isinf
from typing import Any, Self

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...errors import CheckpointExists, InvalidInput
from ...families.checkpoints.coding.delta import Delta
from ...families.checkpoints.family import CheckpointFamily
from ...families.checkpoints.queries import joined
from ...families.checkpoints.records import EncodedCheckpoint, NewCheckpoint, ParentRule
from ...families.checkpoints.store import State, StoreOperations
from ...runtime.arguments import check_checkpoint_id, check_tenant, encode_metadata
from ...runtime.database import Database
from ...runtime.exact_json import canonical_text, decode_json
from ...runtime.server_rows import as_sql_time
from ...runtime.stores import SyncStore, blocking_method

#: The key under which a Locus run lists the saves of its turn that the turn's last save will supersede. From
#: ``locus.agent.runtime_loop.ITERATION_CHECKPOINTS_KEY`` of locus-sdk 3.0.1. If another version uses another name,
#: those saves are stored as lasting ones.
ITERATION_CHECKPOINTS_KEY = "_locus_iteration_checkpoints"

#: The key of a message's first save time: ``locus.memory.retention.MESSAGE_TIME_KEY`` of locus-sdk 3.0.1.
MESSAGE_TIME_KEY = "locus_at"

#: Limits of stamps; others are replaced by these, because a stamp may be any time and MySQL's range is smaller.
FIRST_TIME, LAST_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


def agent_checkpoint(
    encode: Callable[[object], EncodedCheckpoint],
    messages: Sequence[Any],
    checkpoint_id: str | None,
    metadata: object,
    *,
    provisional: bool,
) -> NewCheckpoint:
    """Return the checkpoint to save for the state of an agent.

    Args:
        encode: See `NewCheckpoint`.
        messages: The state's messages, as objects of Locus or as dicts.
        checkpoint_id: See `NewCheckpoint`.
        metadata: See `NewCheckpoint`.
        provisional: See `is_provisional`.
    """

    def search_text(delta: Delta) -> tuple[str, bool]:
        added = messages[delta.news.get("messages", 0) :]
        return joined(_texts(added)), "messages" in delta.news

    opened = opened_at(messages)
    oldest_at = None if opened is None else as_sql_time(opened)
    return NewCheckpoint(encode, search_text, checkpoint_id, metadata, provisional, oldest_at)


def is_provisional(state_metadata: object, checkpoint_id: str | None) -> bool:
    """Return whether a Locus run will supersede and delete this save.

    Args:
        state_metadata: The metadata in the state.
        checkpoint_id: The id under which it is saved.
    """
    superseded = state_metadata.get(ITERATION_CHECKPOINTS_KEY) if isinstance(state_metadata, dict) else None
    return checkpoint_id is not None and isinstance(superseded, list) and checkpoint_id in superseded


def opened_at(messages: Sequence[Any]) -> datetime | None:
    """Return when the first exchange of a conversation began, by the stamp of its first message; None without a stamp.

    ``locus.memory.retention`` drops exchanges from the first on, up to one that is recent or has no stamp. So this
    time decides whether any is dropped, and of a long conversation only one message is read.
    """
    first = next((message for message in messages if _field(message, "role") != "system"), None)
    metadata = _field(first, "metadata")
    stamp = metadata.get(MESSAGE_TIME_KEY) if isinstance(metadata, dict) else None
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return min(max(moment, FIRST_TIME), LAST_TIME)


def _texts(messages: Sequence[Any]) -> Iterator[str]:
    """Yield the texts of messages, except those of the system."""
    for message in messages:
        content = _field(message, "content")
        if isinstance(content, str) and content and _field(message, "role") != "system":
            yield content


def _field(message: object, name: str) -> object:
    return message.get(name) if isinstance(message, dict) else getattr(message, name, None)


class AgentDictOperations(StoreOperations):
    """The operations of `CheckpointStore`, on the states of Locus agents.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config, "agents")

    def of_tenant(self, tenant: str) -> Self:
        """Return the operations for another tenant. They share the cache of threads, with entries per tenant."""
        other = copy.copy(self)
        other.config = self.config.model_copy(update={"tenant": check_tenant(tenant)})
        return other

    def new(self, data: State, checkpoint_id: str | None, metadata: object) -> NewCheckpoint:
        """Return the checkpoint to save for a state. The state of anything but an agent is indexed as a plain dict."""
        new = super().new(data, checkpoint_id, metadata)
        messages = data.get("messages")
        if not isinstance(messages, list):
            return new
        provisional = is_provisional(data.get("metadata"), checkpoint_id)
        return agent_checkpoint(new.encode, messages, checkpoint_id, metadata, provisional=provisional)

    def prepared(
        self, data: State, checkpoint_id: str, metadata: object = None, parent_id: str | None = None
    ) -> NewCheckpoint:
        """Check and encode a checkpoint for `save_once`: the slow part for a large state. Any thread may call this.

        Args:
            data: The state, a dict of values that JSON can represent exactly.
            checkpoint_id: 1 to 128 characters.
            metadata: A dict of JSON values for queries, at most 65,536 bytes as JSON.
            parent_id: The checkpoint that it continues; the thread's newest if None. What this process loaded does
                not matter: another process may have served the client's load.

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
        """Save a state as the newest checkpoint of a thread, unless it was saved already. One round trip.

        A repeated call changes nothing, whatever was saved in between: the checkpoint keeps its position among the
        others. Repetitions are recognised by their content, so a call may be repeated at any later time. If the id
        has another state or other metadata, it moves to this state, as with `CheckpointStore`.

        Args:
            thread_id: 1 to 512 characters, any but NUL; compared by code point.
            new: The result of `prepared`.

        Returns:
            The checkpoint's id.

        Raises:
            ParentMissing: The thread has no checkpoint with the parent's id.
            InvalidInput: An argument cannot be stored exactly.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        try:
            return (yield from self.checkpoints.saving.save(self.tenant, thread_id, new))
        except CheckpointExists:
            pass
        checkpoint_id = check_checkpoint_id(new.checkpoint_id)
        if (yield from self._has(thread_id, checkpoint_id, new)):
            return checkpoint_id
        return (yield from self.checkpoints.saving.save(self.tenant, thread_id, replace(new, must_be_new=False)))

    def _has(self, thread_id: str, checkpoint_id: str, new: NewCheckpoint) -> Operation[bool]:
        """Return whether a checkpoint has this state and metadata."""
        found = yield from self.checkpoints.loading.load(self.tenant, thread_id, checkpoint_id)
        if found is None or canonical(found.text()) != canonical(new.encode(None).state.text()):
            return False
        info = yield from self.checkpoints.queries.get_metadata(self.tenant, thread_id, checkpoint_id)
        text, _ = encode_metadata(new.metadata)
        return info is not None and canonical_text(info["metadata"]) == canonical((text or "{}").encode())

    def load_text(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bytes | None]:
        """Return the state of a checkpoint, or of a thread's newest, as JSON text; None if there is none.

        Raises:
            CorruptCheckpoint: One of its rows was changed or is missing.
        """
        found = yield from self.checkpoints.loading.load(self.tenant, thread_id, checkpoint_id)
        return None if found is None else found.text()


class AgentFamily(CheckpointFamily):
    """The tables of Locus agents' states. See `Family`."""

    def operations(self, config: MySQLConfig) -> AgentDictOperations:
        """Return the operations on agents' states as dicts."""
        return AgentDictOperations(config)


AGENTS = AgentFamily("agents", "Agents", "MySQLCheckpointer")


class AgentDicts(SyncStore[AgentDictOperations]):
    """The threads of Locus agents, for one tenant, as dicts and as JSON text. Needs no Locus.

    Args:
        operations: The operations, for the tenant.
        database: The database of the tables.
    """

    def __init__(self, operations: AgentDictOperations, database: Database) -> None:
        super().__init__(operations, database, owned=False)

    def prepared(
        self, data: State, checkpoint_id: str, metadata: object = None, parent_id: str | None = None
    ) -> NewCheckpoint:
        """Check and encode a checkpoint for `save_once`: the slow part for a large state. Any thread may call this."""
        return self._operations.prepared(data, checkpoint_id, metadata, parent_id)

    save_once = blocking_method(AgentDictOperations.save_once)
    load_text = blocking_method(AgentDictOperations.load_text)
    exists = blocking_method(AgentDictOperations.exists)
    delete = blocking_method(AgentDictOperations.delete)
    list_checkpoints = blocking_method(AgentDictOperations.list_checkpoints)
    copy_thread = blocking_method(AgentDictOperations.copy_thread)
    get_metadata = blocking_method(AgentDictOperations.get_metadata)
    query_by_metadata = blocking_method(AgentDictOperations.query_by_metadata)
    search = blocking_method(AgentDictOperations.search)
    vacuum = blocking_method(AgentDictOperations.vacuum)


def holds_infinity(value: Any) -> bool:
    """Return whether a value contains an infinite number: JSON's numbers may be larger than any float."""
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
    """Return JSON text in a canonical form: equal values, and only these, have equal texts."""
    return canonical_text(decode_json(text))
