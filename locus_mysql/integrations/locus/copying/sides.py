"""What a copy needs of its two sides: `CopySource` and `CopyTarget`, and what goes between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

from locus.core.state import AgentState

from ....families.checkpoints.coding.codec import EncodedState
from ....runtime.exact_json import decode_json, encode_json
from ..state_texts import decode_state, encode_state

#: Told of what cannot be copied as it is.
Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Listed:
    """A checkpoint as its source lists it.

    Args:
        checkpoint_id: Its id.
        saved_at: When it was saved; None if the source does not say.
        place: How the source finds it.
    """

    checkpoint_id: str
    saved_at: datetime | None = None
    place: Any = None


@dataclass(frozen=True, slots=True)
class Given:
    """A checkpoint as its source gives it.

    Args:
        checkpoint_id: Its id.
        thread_id: Its thread.
        state: Its state: as Locus has it, or as this package has stored it.
        metadata: Its metadata; None if the source does not give any.
        saved_at: When it was saved; None if the source does not say.
        parent_id: What it followed; None if nothing.
        knows_parent: Whether that is known.
        provisional: Whether a later save of its turn would have deleted it; None if the state tells.
    """

    checkpoint_id: str
    thread_id: str
    state: AgentState | EncodedState
    metadata: dict[str, Any] | None = None
    saved_at: datetime | None = None
    parent_id: str | None = None
    knows_parent: bool = False
    provisional: bool | None = None

    def agent_state(self) -> AgentState:
        """The state as Locus has it.

        Raises:
            CorruptCheckpoint: It is none.
        """
        if isinstance(self.state, EncodedState):
            return decode_state(self.state.text(), self.thread_id)
        return self.state


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A checkpoint that its source lists and cannot give.

    Args:
        checkpoint_id: Its id.
        why: What is wrong, to stand behind a colon.
    """

    checkpoint_id: str
    why: str


#: Checkpoints that are asked for at once, and how many bytes their states may take together.
ASKED_AT_ONCE, ASKED_BYTES = 8, 8_000_000


async def ask_for_each(
    wanted: Sequence[Listed], ask: Callable[[Listed], Awaitable[Given | Unreadable | None]]
) -> AsyncGenerator[Given | Unreadable, None]:
    """Ask for checkpoints, several at once; fewer where states are large. Those that are gone are left out.

    Args:
        wanted: The checkpoints.
        ask: Asks for one.
    """
    place, at_once = 0, 2
    while place < len(wanted):
        some = wanted[place : place + at_once]
        place += len(some)
        found = await asyncio.gather(*(ask(one) for one in some))
        largest = max((size_of(one.state) for one in found if isinstance(one, Given)), default=0)
        at_once = max(1, min(ASKED_AT_ONCE, 2 * at_once, ASKED_BYTES // max(1, largest)))
        for one in found:
            if one is not None:
                yield one


def size_of(state: AgentState | EncodedState) -> int:
    """About how many bytes a state takes."""
    if isinstance(state, EncodedState):
        return state.size_bytes
    messages = sum(len(message.content or "") + 200 for message in state.messages)
    return messages + sum(len(str(one.result or "")) + 200 for one in state.tool_executions)


def same_states(one: AgentState | EncodedState, other: AgentState | EncodedState, thread_id: str) -> bool:
    """Whether two states are equal, whatever the order in which their sets were written.

    Args:
        one: A state.
        other: Another one.
        thread_id: Their thread, to be named in an error.

    Raises:
        CorruptCheckpoint: One of them is not the state of an agent, and their texts differ.
    """
    texts = [(state if isinstance(state, EncodedState) else encode_state(state)).text() for state in (one, other)]
    if texts[0] == texts[1]:
        return True
    states = [
        decode_state(state.text(), thread_id) if isinstance(state, EncodedState) else state for state in (one, other)
    ]
    if states[0] == states[1]:
        return True
    return _sorted_text(texts[0], states[0]) == _sorted_text(texts[1], states[1])  # NaN is not equal to itself


def _sorted_text(text: bytes, state: AgentState) -> bytes:
    """A state's text with its sets in an order."""
    content = decode_json(text)
    for name, value in content.items():
        if isinstance(getattr(state, name, None), set | frozenset):
            value.sort(key=str)
    return encode_json(content)


def same_metadata(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two are equal as JSON."""
    return one == other or encode_json(dict(one)) == encode_json(dict(other))


class CopySource(Protocol):
    """Where threads are copied from. It is only read."""

    @property
    def gaps(self) -> set[str]:
        """What it cannot give, as far as is known by now, in words."""

    async def open(self) -> None:
        """Make sure that it can be read.

        Raises:
            LocusMySQLError: It cannot.
        """

    async def count(self, pattern: str) -> int | None:
        """About how many threads match a glob; None if it cannot tell."""

    def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """The ids of its threads, in any order, each once; also ones that do not match.

        Raises:
            UsageError: It cannot list them.
        """

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first."""

    def given(self, thread_id: str, wanted: Sequence[Listed]) -> AsyncGenerator[Given | Unreadable, None]:
        """Some of these, in their order. Those deleted meanwhile are left out."""

    async def close(self) -> None:
        """Let go of what was opened for the copy."""


@runtime_checkable
class CountsCheckpoints(Protocol):
    """A source that can count its checkpoints without listing them."""

    async def count_checkpoints(self, pattern: str) -> int:
        """How many checkpoints the threads that match a glob have."""


#: What `TargetThread.difference` says where all else is equal.
ANOTHER_TIME = "it was saved at another time"


class ThreadChanged(Exception):
    """Somebody else wrote to the thread in the target meanwhile; the write was not carried out."""


@dataclass(slots=True)
class Present:
    """What the target has of a thread.

    Args:
        times: When each checkpoint was saved, oldest first; None where that is not known, or is not the source's time.
    """

    times: dict[str, datetime | None] = field(default_factory=dict)


class TargetThread(Protocol):
    """A thread in a target."""

    async def look(self) -> Present:
        """See what is there, before the first write and after one that failed."""

    async def put(self, given: Sequence[Given], replaced: Sequence[str]) -> dict[str, str]:
        """Save checkpoints as the newest, oldest first.

        Args:
            given: The checkpoints.
            replaced: The ids of those that are there, and move to these states.

        Returns:
            By their ids, what is wrong with those that could not be saved.

        Raises:
            ThreadChanged: Somebody else wrote to the thread.
        """

    async def difference(self, given: Given) -> str | None:
        """In what the checkpoint there differs from this one; None if in nothing, `ANOTHER_TIME` if in that alone."""

    async def finish(self, expected: Sequence[str]) -> list[str]:
        """When all was put: what is not as it should be, in words.

        Args:
            expected: The ids of the thread's checkpoints, oldest first.
        """


class CopyTarget(Protocol):
    """Where threads are copied to."""

    @property
    def gaps(self) -> set[str]:
        """What it cannot keep, in words."""

    @property
    def keep(self) -> int | None:
        """How many of a thread's newest checkpoints it keeps; None if all."""

    async def open(self) -> None:
        """Make it ready to be written.

        Raises:
            LocusMySQLError: It cannot be.
        """

    def place_of(self, thread_id: str) -> str | None:
        """Where a thread is kept, if two threads may have the same place and would be mixed up there; else None."""

    def thread(self, thread_id: str) -> TargetThread:
        """A thread."""

    async def close(self) -> None:
        """Let go of what was opened for the copy."""
