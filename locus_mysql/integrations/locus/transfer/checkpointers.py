"""Any Locus checkpointer as a side of a copy. Uses only its public methods."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from pydantic import ValidationError

from ....errors import LocusMySQLError, Unavailable, UsageError
from ....transfer.thread_sides import CopySource, CopyTarget, ListedCheckpoint, UnreadableCheckpoint
from .agent_checkpoints import AgentCheckpoint, load_each, same_metadata, same_states

#: A limit above the number of threads, or of checkpoints of a thread, in any store.
ALL = 1_000_000

NO_METADATA = "metadata"
NO_TIMES = "the times of checkpoints"

#: Sorts before every time of a checkpoint.
BEGINNING_OF_TIME = datetime(1000, 1, 1, tzinfo=UTC)

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
            raise cannot_list(self.checkpointer)
        for thread_id in await self.checkpointer.list_threads(limit=ALL):
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
        return AgentCheckpoint(listed.checkpoint_id, thread_id, state, metadata, saved_at)

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


class CheckpointerTarget(CopyTarget):
    """Writes any Locus checkpointer, by its ``save``.

    Args:
        checkpointer: The checkpointer.
        owned: Whether it is closed when the copy ends.
        dry: Whether nothing may be written. Then it is not read either, as some create their tables on first use.
    """

    def __init__(self, checkpointer: BaseCheckpointer, *, owned: bool, dry: bool) -> None:
        self.checkpointer = checkpointer
        self.dry = dry
        self.gaps = {f"{NO_TIMES}: {type(checkpointer).__name__} records when it was written to"}
        self._owned = owned

    async def open(self) -> None:
        """Check its health, if it supports that."""
        if not self.dry:
            await check_health(self.checkpointer)

    def thread(self, thread_id: str) -> CheckpointerThread:
        """Return a thread."""
        return CheckpointerThread(self, thread_id)

    def refusal(self, thread_id: str, stored: Mapping[str, object]) -> str | None:
        """Return why a thread cannot be stored; None if it can."""
        return None

    async def ids(self, thread_id: str) -> list[str]:
        """List the ids of a thread's checkpoints, oldest first."""
        return list(dict.fromkeys(reversed(await self.checkpointer.list_checkpoints(thread_id, limit=ALL))))

    async def taken(self, thread_id: str, checkpoint_id: str) -> bool:
        """Return whether the location of a checkpoint that the thread does not list is occupied by something else."""
        return False

    async def metadata(self, thread_id: str, checkpoint_id: str) -> dict[str, Any] | None:
        """Load the metadata of a checkpoint; None if the target does not return them."""
        found = await load_metadata(self.checkpointer, thread_id, checkpoint_id)
        return None if found is None else read_metadata(found, checkpoint_id)[0]

    async def save(self, state: AgentState, thread_id: str, one: AgentCheckpoint) -> str:
        """Save a checkpoint; return its id in the target."""
        return await self.checkpointer.save(state, thread_id, one.checkpoint_id, one.metadata)

    async def close(self) -> None:
        """Close it if it was opened for the copy."""
        if self._owned:
            await self.checkpointer.close()


class CheckpointerThread:
    """A thread in any Locus checkpointer.

    Args:
        target: The target.
        thread_id: The thread's id.
    """

    def __init__(self, target: CheckpointerTarget, thread_id: str) -> None:
        self._target = target
        self._thread_id = thread_id
        self._stored: set[str] = set()

    async def checkpoints(self) -> dict[str, datetime | None]:
        """List the stored checkpoints. Their times are those of the target."""
        if self._target.dry:
            return {}
        stored: dict[str, datetime | None] = dict.fromkeys(await self._target.ids(self._thread_id))
        refusal = self._target.refusal(self._thread_id, stored)
        if refusal is not None:
            raise UsageError(refusal)
        self._stored = {*stored}
        return stored

    async def save(self, checkpoints: Sequence[AgentCheckpoint], replaced: Sequence[str]) -> dict[str, str]:
        """Save checkpoints one after another, so that their order is that of the times that the target records."""
        wrong: dict[str, str] = {}
        for one in checkpoints:
            if one.checkpoint_id not in self._stored and await self._target.taken(self._thread_id, one.checkpoint_id):
                wrong[one.checkpoint_id] = "the target has something else under the same key"
                continue
            try:
                state = one.agent_state()
            except (LocusMySQLError, ValueError) as error:
                wrong[one.checkpoint_id] = why_unreadable(error)
                continue
            if await self._target.save(state, self._thread_id, one) != one.checkpoint_id:
                raise UsageError(
                    f"{type(self._target.checkpointer).__name__} gives checkpoints ids of its own, so that a copy "
                    "could not be repeated without duplicates. Nothing more was copied of this thread."
                )
            self._stored.add(one.checkpoint_id)
        return wrong

    async def difference(self, checkpoint: AgentCheckpoint) -> str | None:
        """Return how the stored checkpoint differs from this one."""
        state = await self._target.checkpointer.load(self._thread_id, checkpoint.checkpoint_id)
        if state is None:
            return "the target does not have it"
        if not same_states(state, checkpoint.agent_state(), self._thread_id):
            return "its state differs"
        metadata = await self._target.metadata(self._thread_id, checkpoint.checkpoint_id)
        if checkpoint.metadata is not None and metadata is not None:
            return None if same_metadata(metadata, checkpoint.metadata) else "its metadata differ"
        return None

    async def check(self, expected: Sequence[str]) -> list[str]:
        """Check that the target lists what was saved, in that order."""
        ids = await self._target.ids(self._thread_id)
        listed = {*ids}
        wrong = [
            f"Checkpoint {one!r} of thread {self._thread_id!r} was saved, and the target does not list it."
            for one in expected
            if one not in listed
        ]
        wanted = dict.fromkeys(one for one in expected if one in listed)
        if [one for one in ids if one in wanted] != [*wanted]:
            wrong.append(f"Thread {self._thread_id!r} does not have the source's order in the target.")
        return wrong


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
    if not checkpointer.capabilities.metadata_query:
        return None
    try:
        return await checkpointer.get_metadata(thread_id, checkpoint_id)
    except NotImplementedError:
        return None


def read_metadata(found: Mapping[str, Any], checkpoint_id: str) -> tuple[dict[str, Any] | None, datetime | None]:
    """Return the metadata and the time in what ``get_metadata`` returned: both, or the metadata alone (`S3Backend`)."""
    metadata = found.get("metadata")
    if found.get("checkpoint_id") == checkpoint_id and (metadata is None or isinstance(metadata, dict)):
        return metadata or {}, next((time for time in map(time_of, map(found.get, _TIME_KEYS)) if time), None)
    return dict(found), None


def time_of(value: object) -> datetime | None:
    """Return a time as checkpointers write it, in UTC if it has no zone; None if it is not a time."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)  # type: ignore[arg-type]  # TypeError if not text
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.year >= 1000 else None


def cannot_list(checkpointer: object) -> UsageError:
    """Return the error to raise where threads cannot be listed."""
    return UsageError(f"{type(checkpointer).__name__} cannot list its threads. Name those to copy with --thread.")


def why_unreadable(error: Exception) -> str:
    """Return why Locus does not accept a state; pydantic's message may hold part of it, so it is not used."""
    if isinstance(error, ValidationError) or not isinstance(error, LocusMySQLError):
        return "it is not a state of this version of Locus"
    return str(error)


def state_of(data: Mapping[str, Any]) -> AgentState:
    """Return the state in a dict.

    Raises:
        ValueError: It is not a state.
    """
    if "messages" not in data:  # Locus would make an empty state of any other dict
        raise ValueError("messages")
    return AgentState.from_checkpoint(dict(data))
