"""Saves the state of a Locus agent as a checkpoint: its searchable text, its age, and whether it is provisional.

Agents save `AgentState` objects; the service and imports save the same states as dicts, even if Locus is not
installed. Both forms are read here, so that either can continue the other's threads and searches find both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ...families.checkpoints.coding.delta import Delta
from ...families.checkpoints.new_checkpoint import EncodedCheckpoint, NewCheckpoint
from ...families.checkpoints.search_text import joined
from ...runtime.server_times import as_sql_time

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
