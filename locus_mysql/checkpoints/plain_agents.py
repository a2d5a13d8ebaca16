"""The states of Locus agents as plain dicts: what is kept beside them, told without Locus."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from .coding.codec import encode
from .coding.delta import Delta
from .new import Encoded, NewCheckpoint
from .rows import as_sql_time
from .searchable import joined

#: Where Locus stamps a message with the time of its first save: ``locus.memory.retention``.
MESSAGE_TIME_KEY = "locus_at"

#: A stamp from before or after counts as these: it may be anything, and the server knows fewer times than Python.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


def new_of_agent(
    state: Mapping[str, Any], checkpoint_id: str | None, metadata: object, *, provisional: bool = False
) -> NewCheckpoint:
    """What to save for an agent's state that came as JSON.

    Args:
        state: The state, as Locus' ``to_checkpoint`` gives it.
        checkpoint_id: Its id; a random one if None.
        metadata: What it can be found by.
        provisional: Whether a later save will supersede it and delete it.

    Raises:
        InvalidInput: It cannot be stored exactly.
    """
    encoded = Encoded(encode(state))
    messages = [one for one in _list_of(state.get("messages")) if isinstance(one, dict)]

    def text(delta: Delta) -> tuple[str, bool]:
        continues = "messages" in delta.news
        added = messages[delta.news["messages"] if continues else 0 :]
        return joined(_said(message) for message in added), continues

    opened = opened_at(messages)
    time = None if opened is None else as_sql_time(opened)
    return NewCheckpoint(lambda _: encoded, text, checkpoint_id, metadata, provisional, time)


def opened_at(messages: list[dict[str, Any]]) -> datetime | None:
    """When the first exchange of a conversation began, by the stamp of its first message; None if it has none."""
    first = next((message for message in messages if message.get("role") != "system"), {})
    metadata = first.get("metadata")
    stamp = metadata.get(MESSAGE_TIME_KEY) if isinstance(metadata, dict) else None
    try:
        moment = datetime.fromisoformat(stamp)  # type: ignore[arg-type]  # what is no text raises TypeError
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(moment, _FIRST), _LAST)


def _said(message: Mapping[str, Any]) -> str:
    """What is searched of a message."""
    content = message.get("content")
    return content if isinstance(content, str) and message.get("role") != "system" else ""


def _list_of(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
