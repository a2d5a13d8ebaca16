"""When messages were first saved: `FirstSaved`, `opened_at`. What it is for is told in ``locus.memory.retention``."""

from __future__ import annotations

import weakref
from datetime import datetime
from typing import TYPE_CHECKING

from .dicts import FIRST_TIME, LAST_TIME

if TYPE_CHECKING:
    from locus.core.messages import Message
    from locus.core.state import AgentState


def opened_at(state: AgentState) -> datetime | None:
    """When the first exchange of a conversation began, by the stamp of its first message; None if it has none.

    Exchanges are dropped from the first on, up to one that is recent or has no stamp. So this tells whether any is to
    be dropped, whoever stamped the messages, and of a long conversation looks at one message.
    """
    from locus.core.messages import Role
    from locus.memory.retention import message_time

    first = next((message for message in state.messages if message.role != Role.SYSTEM), None)
    moment = None if first is None else message_time(first)
    return None if moment is None else min(max(moment, FIRST_TIME), LAST_TIME)


class FirstSaved:
    """Stamps messages with the time they were first saved.

    A run saves several times, and its state in memory is never stamped. So the times given are remembered, for as long
    as the run holds the message: a message stamped anew at each save would be a changed message, and be stored again.
    """

    def __init__(self) -> None:
        self._stamps: dict[int, tuple[weakref.ref[Message], str]] = {}

    def stamp(self, state: AgentState, now: datetime) -> AgentState:
        """The state with every message stamped, those unknown with ``now``."""
        from locus.memory.retention import MESSAGE_TIME_KEY

        stamped = tuple(
            message
            if MESSAGE_TIME_KEY in message.metadata
            else message.model_copy(
                update={"metadata": {**message.metadata, MESSAGE_TIME_KEY: self._time_of(message, now)}}
            )
            for message in state.messages
        )
        return state.model_copy(update={"messages": stamped})

    def _time_of(self, message: Message, now: datetime) -> str:
        key = id(message)
        known = self._stamps.get(key)
        if known is not None and known[0]() is message:
            return known[1]
        stamp = now.isoformat()
        self._stamps[key] = (weakref.ref(message, lambda _: self._stamps.pop(key, None)), stamp)
        return stamp
