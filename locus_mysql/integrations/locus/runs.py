"""The position of each run in its thread: `RunPositions`. A save uses it to detect other saves since the load.

A run of an agent loads a state, derives others from it, and saves some of them. Two runs may do so at once in one
process, with the same checkpointer, and even with equal states: neither the process, nor the task (Locus' runs are
asynchronous generators, which live in whatever task asks for their next event), nor the messages distinguish them. So
each loaded state is stamped in its metadata, which a run hands on from state to state, as it does with Locus' own list
of a turn's checkpoints. The stamp names the newest checkpoint at the time of the load, and is unique to the load; the
run's later saves are recorded under it. A state without a stamp was created by a run that found nothing to load: its
``run_id`` identifies it. Stamps are removed before a state is stored.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from locus.core.state import AgentState

from ...families.checkpoints.preconditions import NO_CHECKPOINT, NoCheckpoint
from ...families.checkpoints.statements.tables import ThreadKey
from ...lru_cache import LRUCache

if TYPE_CHECKING:
    from locus.core.messages import Message
    from locus.core.state import AgentState

#: The key of the stamp in the metadata of a loaded state.
STAMP_KEY = "_locus_mysql_loaded"

#: Maximum number of runs with saves that are remembered; those with the oldest saves are dropped first.
RUNS_REMEMBERED = 10_000

#: Maximum number of checkpoints in branches that are remembered, until they are deleted.
BRANCHED_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class RunPosition:
    """The position of a run in its thread.

    Args:
        name: The name that identifies the run.
        newest: The token of the checkpoint that the run knows as the newest.
        branch: The thread that its saves go into instead, if there was a conflict.
    """

    name: str
    newest: bytes | Literal[NoCheckpoint.NO_CHECKPOINT]
    branch: str | None = None


class RunPositions:
    """Positions of the runs of one process."""

    def __init__(self) -> None:
        self.reset_in_child()

    def reset_in_child(self) -> None:
        """Forget all: after a fork, a thread of the parent may hold a lock for ever."""
        self._positions: LRUCache[RunPosition] = LRUCache(RUNS_REMEMBERED)
        self._branched: LRUCache[str] = LRUCache(BRANCHED_REMEMBERED)

    def stamp(self, state: AgentState, key: ThreadKey, newest: bytes | None) -> AgentState:
        """Return a loaded state with a stamp that is unique to this load.

        Args:
            state: The state.
            key: Its thread.
            newest: The token of the thread's newest checkpoint, None if there is none.
        """
        stamp = f"{os.urandom(8).hex()}.{(newest or b'').hex()}.{_digest(key)}"
        return state.with_metadata(STAMP_KEY, stamp)

    def of(self, state: AgentState, key: ThreadKey) -> RunPosition:
        """Return the position in a thread of the run of a state; the beginning if it has not loaded the thread."""
        name, newest = _read(state.metadata.get(STAMP_KEY), key) or (f"run {state.run_id}", NO_CHECKPOINT)
        return self._positions.get((key, name)) or RunPosition(name, newest)

    def saved(self, position: RunPosition, key: ThreadKey, token: bytes) -> None:
        """Record that the run saved to its thread, and the newest checkpoint."""
        self._remember(key, replace(position, newest=token))

    def branched(self, position: RunPosition, key: ThreadKey, branch: str) -> None:
        """Record that the run's saves go into another thread from now on."""
        self._remember(key, replace(position, branch=branch))

    def saved_in_branch(self, key: ThreadKey, checkpoint_id: str, branch: str) -> None:
        """Record that a checkpoint, which the run expects in its thread, is in a branch."""
        self._branched.put((key, checkpoint_id), branch)

    def branch_of(self, key: ThreadKey, checkpoint_id: str) -> str | None:
        """Return the branch of such a checkpoint, which is about to be deleted."""
        return self._branched.pop((key, checkpoint_id))

    def _remember(self, key: ThreadKey, position: RunPosition) -> None:
        self._positions.put((key, position.name), position)


def unstamped(state: AgentState) -> AgentState:
    """Return a state without a stamp, for storage."""
    if STAMP_KEY not in state.metadata:
        return state
    metadata = {name: value for name, value in state.metadata.items() if name != STAMP_KEY}
    return state.model_copy(update={"metadata": metadata})


def _read(stamp: object, key: ThreadKey) -> tuple[str, bytes | Literal[NoCheckpoint.NO_CHECKPOINT]] | None:
    """Return the name and the newest checkpoint of a stamp, if it belongs to this thread."""
    if not isinstance(stamp, str) or stamp.count(".") != 2:
        return None
    name, newest, thread = stamp.split(".")
    if thread != _digest(key):
        return None
    try:
        return name, bytes.fromhex(newest) or NO_CHECKPOINT
    except ValueError:
        return None


def _digest(key: ThreadKey) -> str:
    return hashlib.sha256("\0".join(key).encode(), usedforsecurity=False).hexdigest()[:16]


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
