"""Any Locus checkpointer as the source of a copy. Uses only its public methods."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from locus.core.state import AgentState
from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.checkpointer import BaseCheckpointer
from pydantic import ValidationError

from ....errors import LocusMySQLError, Unavailable, UsageError
from .sources import AgentCheckpoint, CopySource, ListedCheckpoint, UnreadableCheckpoint, load_each

#: A limit above the number of threads, or of checkpoints of a thread, in any store.
ALL = 1_000_000

#: `StorageBackendAdapter` lists the keys of its backend; each thread has one with this end, its list of checkpoints.
_LIST = ":_checkpoints"

NO_METADATA = "metadata"
NO_TIMES = "the times of checkpoints"

#: The keys under which checkpointers return the time of a checkpoint.
_TIME_KEYS = ("created_at", "timestamp", "updated_at")


class CheckpointerSource(CopySource):
    """Reads any Locus checkpointer.

    Args:
        checkpointer: The checkpointer.
        owned: Whether it is closed when the copy ends.
    """

    def __init__(self, checkpointer: BaseCheckpointer, *, owned: bool) -> None:
        self.checkpointer = checkpointer
        self.gaps = set()
        self._owned = owned

    async def open(self) -> None:
        """Check its health, if it supports that: some checkpointers return nothing while their server is down."""
        await check_health(self.checkpointer)

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of its threads."""
        if not self.checkpointer.capabilities.list_threads:
            raise UsageError(
                f"{type(self.checkpointer).__name__} cannot list its threads. Name those to copy with --thread."
            )
        names = await self.checkpointer.list_threads(limit=ALL)
        if isinstance(self.checkpointer, StorageBackendAdapter):
            # It passes "*" to its backend, which means everything to all but PostgreSQL, where "%" does.
            keys = dict.fromkeys([*names, *await self.checkpointer.list_threads(limit=ALL, pattern="%")])
            names = [key.removesuffix(_LIST) for key in keys if key.endswith(_LIST)]
        for thread_id in names:
            yield thread_id

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first."""
        ids = await self.checkpointer.list_checkpoints(thread_id, limit=ALL)
        return [ListedCheckpoint(one) for one in dict.fromkeys(reversed(ids))]

    def load(
        self, thread_id: str, wanted: Sequence[ListedCheckpoint]
    ) -> AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]:
        """Load some of the checkpoints, in their order."""
        return load_each(wanted, lambda one: self.load_one(thread_id, one))

    async def load_one(self, thread_id: str, listed: ListedCheckpoint) -> AgentCheckpoint | UnreadableCheckpoint:
        """Load a checkpoint."""
        state = await self.load_state(thread_id, listed.checkpoint_id)
        if isinstance(state, UnreadableCheckpoint):
            return state
        metadata, saved_at = await self._load_metadata(thread_id, listed.checkpoint_id)
        return AgentCheckpoint(listed.checkpoint_id, state, metadata, saved_at)

    async def load_state(self, thread_id: str, checkpoint_id: str) -> AgentState | UnreadableCheckpoint:
        """Load a checkpoint's state."""
        try:
            state = await self.checkpointer.load(thread_id, checkpoint_id)
        except (ValueError, TypeError, KeyError, LookupError) as error:
            return UnreadableCheckpoint(checkpoint_id, why_unreadable(error))
        if state is None:
            return UnreadableCheckpoint(checkpoint_id, "the source lists it and gives no state")
        return state

    async def _load_metadata(self, thread_id: str, checkpoint_id: str) -> tuple[dict[str, Any] | None, datetime | None]:
        """Load the metadata and the time of a checkpoint, as far as the source has them."""
        metadata = saved_at = None
        found = await load_metadata(self.checkpointer, thread_id, checkpoint_id)
        if found is not None:
            metadata, saved_at = read_metadata(found, checkpoint_id)
        if metadata is None:
            self.gaps.add(NO_METADATA)
        if saved_at is None:
            self.gaps.add(NO_TIMES)
        return metadata, saved_at

    async def close(self) -> None:
        """Close it if it was opened for the copy."""
        if self._owned:
            await self.checkpointer.close()


async def check_health(checkpointer: BaseCheckpointer) -> None:
    """Check a checkpointer's health.

    Raises:
        Unavailable: The health check fails.
    """
    ask = getattr(checkpointer, "health_check", None)
    if ask is None or not inspect.iscoroutinefunction(ask):
        return
    if await ask() is False:
        raise Unavailable(f"{type(checkpointer).__name__} reports that its server does not answer.")


async def load_metadata(checkpointer: BaseCheckpointer, thread_id: str, checkpoint_id: str) -> Mapping[str, Any] | None:
    """Return what ``get_metadata`` returns; None if the checkpointer does not support it."""
    # The adapter has the method even where its backend cannot search metadata.
    if not checkpointer.capabilities.metadata_query and not isinstance(checkpointer, StorageBackendAdapter):
        return None
    try:
        return await checkpointer.get_metadata(thread_id, checkpoint_id)
    except NotImplementedError:
        return None


def read_metadata(found: Mapping[str, Any], checkpoint_id: str) -> tuple[dict[str, Any] | None, datetime | None]:
    """Return the metadata and the time in what ``get_metadata`` returned: both, or the metadata alone (`S3Backend`)."""
    metadata = found.get("metadata")
    saved_at = next((time for time in map(time_of, map(found.get, _TIME_KEYS)) if time), None)
    is_record = found.get("checkpoint_id") == checkpoint_id or ("checkpoint_id" in found and saved_at is not None)
    if is_record and (metadata is None or isinstance(metadata, dict)):
        return metadata or {}, saved_at
    return dict(found), None


def time_of(value: object) -> datetime | None:
    """Return a time as checkpointers write it, in UTC if it has no zone; None if it is not a time."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)  # type: ignore[arg-type]  # TypeError if not text
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.year >= 1000 else None


def why_unreadable(error: Exception) -> str:
    """Return why Locus does not accept a state; pydantic's message may hold part of it, so it is not used."""
    if isinstance(error, ValidationError) or not isinstance(error, LocusMySQLError):
        return "it is not a state of this version of Locus"
    return str(error)
