"""Interfaces of the two sides of a copy of threads: `CopySource` and `CopyTarget`, and the data between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


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


class LoadedCheckpoint(Protocol):
    """A checkpoint that was loaded from its source."""

    @property
    def checkpoint_id(self) -> str:
        """Its id."""

    @property
    def size_bytes(self) -> int:
        """The approximate size of its state in bytes."""


@dataclass(frozen=True, slots=True)
class UnreadableCheckpoint:
    """A checkpoint that its source lists and cannot load.

    Args:
        checkpoint_id: Its id.
        why: The reason, to be written after a colon.
    """

    checkpoint_id: str
    why: str


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
    ) -> AsyncGenerator[LoadedCheckpoint | UnreadableCheckpoint, None]:
        """Load some of these, in their order. Checkpoints deleted meanwhile are left out."""

    async def changed(self, pattern: str, seen: Mapping[str, int]) -> int:
        """Return how many threads were created, deleted or changed since they were listed; 0 if that is not known.

        Args:
            pattern: The glob that the threads match.
            seen: Number of checkpoints of each thread when it was listed.
        """
        return 0

    async def close(self) -> None:  # noqa: B027 - some have nothing to close
        """Close what was opened for the copy."""


#: What `TargetThread.difference` returns if everything else is equal.
ANOTHER_TIME = "it was saved at another time"


class ThreadChanged(Exception):
    """Another process wrote to the thread in the target meanwhile; nothing was saved."""


class TargetThread(Protocol):
    """A thread in a target."""

    async def checkpoints(self) -> Mapping[str, datetime | None]:
        """Return the time of each checkpoint, oldest first; None where it is not known, or is not the source's time.

        Called before the first save, and after each that failed.
        """

    async def save(self, checkpoints: Sequence[Any], replaced: Sequence[str]) -> dict[str, str]:
        """Save checkpoints as the newest, oldest first.

        Args:
            checkpoints: The checkpoints.
            replaced: The ids of those that are present, and are replaced by these.

        Returns:
            By their ids, why some could not be saved.

        Raises:
            ThreadChanged: Another process wrote to the thread.
        """

    async def difference(self, checkpoint: Any) -> str | None:
        """Return how the stored checkpoint differs from this one; None if it does not."""


class CopyTarget(ABC):
    """Target of a copy of threads.

    Attributes:
        keep: Number of newest checkpoints that it keeps of a thread; None if all.
    """

    keep: int | None = None

    @abstractmethod
    async def open(self) -> None:
        """Prepare it to be written.

        Raises:
            LocusMySQLError: It cannot be written.
        """

    @abstractmethod
    def thread(self, thread_id: str) -> TargetThread:
        """Return a thread."""

    async def close(self) -> None:  # noqa: B027 - some have nothing to close
        """Close what was opened for the copy."""
