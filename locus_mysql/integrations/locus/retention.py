"""Stamps messages with the time of their first save, for ``locus.memory.retention``: `FirstSaved`."""

from __future__ import annotations

import weakref
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locus.core.messages import Message
    from locus.core.state import AgentState


class FirstSaved:
    """Stamps messages with the time they were first saved.

    A run saves several times, and its state in memory is never stamped. So the stamps are remembered as long as the
    run holds the message: a message with a new stamp at each save would be a changed message, and be stored again.
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
