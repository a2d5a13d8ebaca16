"""Any Locus checkpointer as a side of a copy, by its public methods alone."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from pydantic import ValidationError

from ....errors import LocusMySQLError, Unavailable, UsageError
from .sides import (
    Given,
    Listed,
    Present,
    Unreadable,
    ask_for_each,
    same_metadata,
    same_states,
)

#: More threads, or checkpoints of a thread, than there are.
ALL = 1_000_000

NO_METADATA = "metadata"
NO_TIMES = "the times of checkpoints"

#: Where checkpointers tell the time of a checkpoint.
_TIME_KEYS = ("created_at", "timestamp", "updated_at")


class CheckpointerSource:
    """Reads any Locus checkpointer.

    Args:
        checkpointer: The checkpointer.
        owned: Whether it is closed when the copy ends.
    """

    def __init__(self, checkpointer: BaseCheckpointer, *, owned: bool) -> None:
        self.checkpointer = checkpointer
        self.gaps: set[str] = set()
        self._owned = owned

    async def open(self) -> None:
        """Make sure that it answers, if it can be asked: some take a server that is away for an empty one."""
        await check_health(self.checkpointer)

    async def count(self, pattern: str) -> int | None:
        """It can only list them."""
        return None

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """The ids of its threads."""
        if not self.checkpointer.capabilities.list_threads:
            raise cannot_list(self.checkpointer)
        for thread_id in await self.checkpointer.list_threads(limit=ALL):
            yield thread_id

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first."""
        ids = await self.checkpointer.list_checkpoints(thread_id, limit=ALL)
        return [Listed(one) for one in dict.fromkeys(reversed(ids))]

    async def given(self, thread_id: str, wanted: Sequence[Listed]) -> AsyncGenerator[Given | Unreadable, None]:
        """Some of these, in their order."""
        async with aclosing(ask_for_each(wanted, lambda one: self.give(thread_id, one))) as given:
            async for found in given:
                yield found

    async def give(self, thread_id: str, listed: Listed) -> Given | Unreadable:
        """A checkpoint."""
        state = await self.load(thread_id, listed.checkpoint_id)
        if isinstance(state, Unreadable):
            return state
        metadata, saved_at = await self._about(thread_id, listed.checkpoint_id)
        return Given(listed.checkpoint_id, thread_id, state, metadata, saved_at)

    async def load(self, thread_id: str, checkpoint_id: str) -> AgentState | Unreadable:
        """A checkpoint's state."""
        try:
            state = await self.checkpointer.load(thread_id, checkpoint_id)
        except (ValueError, TypeError, KeyError, LookupError) as error:
            return Unreadable(checkpoint_id, why_unreadable(error))
        return Unreadable(checkpoint_id, "the source lists it and gives no state") if state is None else state

    async def _about(self, thread_id: str, checkpoint_id: str) -> tuple[dict[str, Any] | None, datetime | None]:
        """The metadata and the time of a checkpoint, as far as they are told."""
        metadata = saved_at = None
        about = await about_checkpoint(self.checkpointer, thread_id, checkpoint_id)
        if about is not None:
            metadata, saved_at = read_about(about, checkpoint_id)
        if metadata is None:
            self.gaps.add(NO_METADATA)
        if saved_at is None:
            self.gaps.add(NO_TIMES)
        return metadata, saved_at

    async def close(self) -> None:
        """Close it if it was opened for the copy."""
        if self._owned:
            await self.checkpointer.close()


class CheckpointerTarget:
    """Writes any Locus checkpointer, by its ``save``.

    Args:
        checkpointer: The checkpointer.
        owned: Whether it is closed when the copy ends.
        dry: Whether nothing may be written. Then it is not asked either, as some make their tables when they are.
    """

    keep: int | None = None

    def __init__(self, checkpointer: BaseCheckpointer, *, owned: bool, dry: bool) -> None:
        self.checkpointer = checkpointer
        self.dry = dry
        self.gaps = {f"{NO_TIMES}: {type(checkpointer).__name__} notes when it was written to"}
        self._owned = owned

    async def open(self) -> None:
        """Make sure that it answers, if it can be asked."""
        if not self.dry:
            await check_health(self.checkpointer)

    def place_of(self, thread_id: str) -> str | None:
        """Each has its own place, as far as is known."""
        return None

    def thread(self, thread_id: str) -> CheckpointerThread:
        """A thread."""
        return CheckpointerThread(self, thread_id)

    def refusal(self, thread_id: str, there: Mapping[str, object]) -> str | None:
        """Why a thread cannot be kept; None if it can."""
        return None

    async def ids(self, thread_id: str) -> list[str]:
        """The ids of a thread's checkpoints, oldest first."""
        return list(dict.fromkeys(reversed(await self.checkpointer.list_checkpoints(thread_id, limit=ALL))))

    async def taken(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether something else is in the place of a checkpoint that the thread does not list."""
        return False

    async def metadata(self, thread_id: str, checkpoint_id: str) -> dict[str, Any] | None:
        """The metadata of a checkpoint; None if that is not told."""
        about = await about_checkpoint(self.checkpointer, thread_id, checkpoint_id)
        return None if about is None else read_about(about, checkpoint_id)[0]

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
        self._checkpointer = target.checkpointer
        self._thread_id = thread_id
        self._there: set[str] = set()

    async def look(self) -> Present:
        """See what is there."""
        if self._target.dry:
            return Present()
        present = Present(dict.fromkeys(await self._target.ids(self._thread_id)))
        refusal = self._target.refusal(self._thread_id, present.times)
        if refusal is not None:
            raise UsageError(refusal)
        self._there = {*present.times}
        return present

    async def put(self, given: Sequence[Given], replaced: Sequence[str]) -> dict[str, str]:
        """Save checkpoints one after another, so that their order is that of the times that the target notes."""
        wrong: dict[str, str] = {}
        for one in given:
            if one.checkpoint_id not in self._there and await self._target.taken(self._thread_id, one.checkpoint_id):
                wrong[one.checkpoint_id] = "the target has something else under the same key"
                continue
            try:
                state = one.agent_state()
            except (LocusMySQLError, ValueError) as error:
                wrong[one.checkpoint_id] = why_unreadable(error)
                continue
            saved = await self._checkpointer.save(state, self._thread_id, one.checkpoint_id, one.metadata)
            if saved != one.checkpoint_id:
                raise UsageError(
                    f"{type(self._checkpointer).__name__} gives checkpoints ids of its own, so that a copy could not "
                    "be begun again without doubling them. Nothing more was copied of this thread."
                )
            self._there.add(one.checkpoint_id)
        return wrong

    async def difference(self, given: Given) -> str | None:
        """In what the checkpoint there differs from this one."""
        state = await self._checkpointer.load(self._thread_id, given.checkpoint_id)
        if state is None:
            return "it is not there"
        if not same_states(state, given.agent_state(), self._thread_id):
            return "its state is another one"
        metadata = await self._target.metadata(self._thread_id, given.checkpoint_id)
        if given.metadata is not None and metadata is not None and not same_metadata(metadata, given.metadata):
            return "its metadata is other metadata"
        return None

    async def finish(self, expected: Sequence[str]) -> list[str]:
        """Whether it lists what was saved, in that order."""
        ids = await self._target.ids(self._thread_id)
        listed = {*ids}
        wrong = [
            f"Checkpoint {one!r} of thread {self._thread_id!r} was saved, and the target does not list it."
            for one in expected
            if one not in listed
        ]
        wanted = [one for one in expected if one in listed]
        if [one for one in ids if one in {*wanted}] != wanted:
            wrong.append(f"Thread {self._thread_id!r} is not in the source's order in the target.")
        return wrong


async def check_health(checkpointer: BaseCheckpointer) -> None:
    """Refuse a checkpointer that can tell that its server is away, and says so.

    Raises:
        Unavailable: It says so.
    """
    ask = getattr(checkpointer, "health_check", None)
    if ask is None or not inspect.iscoroutinefunction(ask):
        return
    if await ask() is False:
        raise Unavailable(f"{type(checkpointer).__name__} says that its server does not answer.")


async def about_checkpoint(
    checkpointer: BaseCheckpointer, thread_id: str, checkpoint_id: str
) -> Mapping[str, Any] | None:
    """What a checkpointer tells of a checkpoint beside its state; None if it tells nothing."""
    if not checkpointer.capabilities.metadata_query:
        return None
    try:
        return await checkpointer.get_metadata(thread_id, checkpoint_id)
    except NotImplementedError:
        return None


def read_about(about: Mapping[str, Any], checkpoint_id: str) -> tuple[dict[str, Any] | None, datetime | None]:
    """Metadata and time in what a checkpointer tells: beside each other, or the metadata alone (`S3Backend`)."""
    metadata = about.get("metadata")
    if about.get("checkpoint_id") == checkpoint_id and (metadata is None or isinstance(metadata, dict)):
        return metadata or {}, next((time for time in map(time_of, map(about.get, _TIME_KEYS)) if time), None)
    return dict(about), None


def time_of(value: object) -> datetime | None:
    """A time as checkpointers tell it; without a zone, it is in UTC. None if it is none."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)  # type: ignore[arg-type]  # TypeError if not text
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.year >= 1000 else None


def cannot_list(checkpointer: object) -> UsageError:
    """The error to raise where threads cannot be listed."""
    return UsageError(f"{type(checkpointer).__name__} cannot list its threads. Name those to copy with --thread.")


def why_unreadable(error: Exception) -> str:
    """What is wrong with a state that Locus does not take; pydantic's words may hold part of it."""
    if isinstance(error, ValidationError) or not isinstance(error, LocusMySQLError):
        return "it is not a state of this version of Locus"
    return str(error)


def state_of(data: Mapping[str, Any]) -> AgentState:
    """The state of a dict.

    Raises:
        ValueError: It is none.
    """
    if "messages" not in data:  # of a dict of anything else, Locus would make an empty state
        raise ValueError("messages")
    return AgentState.from_checkpoint(dict(data))
