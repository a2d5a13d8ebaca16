"""The source of a copy of threads, `CopySource`, its checkpoints, and the comparison of their states."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from locus.core.state import AgentState

from ....runtime.exact_json import canonical_text, decode_json
from ..state_texts import encode_state


class CopySource(ABC):
    """Source of a copy of threads. It is only read.

    Attributes:
        gaps: Descriptions of data that it cannot provide, as far as is known by now.
    """

    gaps: set[str]

    @abstractmethod
    async def open(self) -> None:
        """Check that it can be read.

        Raises:
            LocusMySQLError: It cannot.
        """

    async def count(self, pattern: str) -> int | None:
        """Return the approximate number of threads that match a glob; None if it is not known."""
        return None

    @abstractmethod
    def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of its threads, in any order, each once. Threads that do not match may be included.

        Raises:
            UsageError: It cannot list them.
        """

    @abstractmethod
    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first."""

    @abstractmethod
    def load(
        self, thread_id: str, wanted: Sequence[ListedCheckpoint]
    ) -> AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]:
        """Load some of these, in their order. Checkpoints deleted meanwhile are left out."""

    async def close(self) -> None:  # noqa: B027 - some have nothing to close
        """Close what was opened for the copy."""


@dataclass(frozen=True, slots=True)
class ListedCheckpoint:
    """A checkpoint in the list of its thread.

    Args:
        checkpoint_id: Its id.
        saved_at: When it was saved; None if the source does not have it.
        locator: The source's own reference to it.
    """

    checkpoint_id: str
    saved_at: datetime | None = None
    locator: Any = None


@dataclass(frozen=True, slots=True)
class UnreadableCheckpoint:
    """A checkpoint that its source lists and cannot load.

    Args:
        checkpoint_id: Its id.
        why: The reason, to be written after a colon.
    """

    checkpoint_id: str
    why: str


@dataclass(frozen=True, slots=True)
class AgentCheckpoint:
    """A checkpoint that was loaded from its source.

    Args:
        checkpoint_id: Its id.
        state: Its state.
        metadata: Its metadata; None if the source does not provide any.
        saved_at: When it was saved; None if the source does not have the time.
    """

    checkpoint_id: str
    state: AgentState
    metadata: dict[str, Any] | None = None
    saved_at: datetime | None = None

    @property
    def size_bytes(self) -> int:
        """The approximate size of the state in bytes."""
        messages = sum(len(message.content or "") + 200 for message in self.state.messages)
        return messages + sum(len(str(one.result or "")) + 200 for one in self.state.tool_executions)


#: Limits of concurrent loading: checkpoints, and bytes of their states.
LOADED_AT_ONCE, LOADED_BYTES = 8, 8_000_000


async def load_each(
    wanted: Sequence[ListedCheckpoint],
    load: Callable[[ListedCheckpoint], Awaitable[AgentCheckpoint | UnreadableCheckpoint | None]],
) -> AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]:
    """Load checkpoints, several concurrently; fewer where states are large. Deleted ones are left out.

    Args:
        wanted: The checkpoints.
        load: Loads one.
    """
    start, at_once = 0, 2
    while start < len(wanted):
        some = wanted[start : start + at_once]
        start += len(some)
        found = await asyncio.gather(*(load(one) for one in some))
        largest = max((one.size_bytes for one in found if isinstance(one, AgentCheckpoint)), default=0)
        at_once = max(1, min(LOADED_AT_ONCE, 2 * at_once, LOADED_BYTES // max(1, largest)))
        for one in found:
            if one is not None:
                yield one


def same_states(one: AgentState, other: AgentState) -> bool:
    """Return whether two states are equal, ignoring the order in which their sets were written."""
    return encode_state(one).text() == encode_state(other).text() or _sorted_text(one) == _sorted_text(other)


def _sorted_text(state: AgentState) -> str:
    """Return a state's canonical text, with its sets sorted."""
    content = decode_json(encode_state(state).text())
    for name, value in content.items():
        if isinstance(getattr(state, name, None), set | frozenset):
            value.sort(key=str)
    return canonical_text(content)


def same_metadata(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two metadata are equal as JSON."""
    return canonical_text(dict(one)) == canonical_text(dict(other))
