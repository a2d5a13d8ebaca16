"""What each run knows of its thread: `Lines`. So a save can tell whether somebody else saved meanwhile.

A run of an agent loads a state, makes others of it, and saves some of them. Two runs may do so at once in one process,
with the same checkpointer, and even with equal states: neither the process, nor the task (Locus' runs are asynchronous
generators, which live in whatever task asks for their next event), nor the messages tell them apart. So each loaded
state is stamped in its metadata, which a run hands on from state to state, as it does with Locus' own list of a turn's
checkpoints. The stamp says what was the newest checkpoint when the state was loaded, and is unique to the load; what
the run has saved since is remembered under it. A state without a stamp was begun anew by a run that found nothing to
load: it is known by its ``run_id``. Stamps are taken off before a state is stored.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Literal

from locus.core.state import AgentState

from ...engine.at_fork import tell_at_fork
from ...families.checkpoints.conditions import NO_CHECKPOINT, NoCheckpoint
from ...families.checkpoints.thread_cache import ThreadKey

#: Where a loaded state carries its stamp.
STAMP_KEY = "_locus_mysql_loaded"

#: Runs remembered that have saved; those that saved longest ago are forgotten first.
LINES_REMEMBERED = 10_000

#: Checkpoints in branches remembered, until they are deleted.
BRANCHED_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class RunPosition:
    """Where a run stands in its thread.

    Args:
        name: What the run is known by.
        newest: The token of the checkpoint that the run knows as the newest.
        branch: The thread that its saves go into instead, if there was a conflict.
    """

    name: str
    newest: bytes | Literal[NoCheckpoint.NO_CHECKPOINT]
    branch: str | None = None


class Lines:
    """The runs of one process."""

    def __init__(self) -> None:
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: a lock that a thread of the parent holds is not this process's."""
        self._lock = threading.Lock()
        self._lines: OrderedDict[tuple[ThreadKey, str], RunPosition] = OrderedDict()
        self._branched: OrderedDict[tuple[ThreadKey, str], str] = OrderedDict()

    def stamp(self, state: AgentState, key: ThreadKey, newest: bytes | None) -> AgentState:
        """A state that was just loaded, with a stamp that is unique to this load.

        Args:
            state: The state.
            key: Its thread.
            newest: The token of the thread's newest checkpoint, None if there is none.
        """
        stamp = f"{os.urandom(8).hex()}.{(newest or b'').hex()}.{_digest(key)}"
        return state.with_metadata(STAMP_KEY, stamp)

    def of(self, state: AgentState, key: ThreadKey) -> RunPosition:
        """Where the run that made a state stands in a thread; at the beginning if it has not loaded it."""
        name, newest = _read(state.metadata.get(STAMP_KEY), key) or (f"run {state.run_id}", NO_CHECKPOINT)
        with self._lock:
            return self._lines.get((key, name)) or RunPosition(name, newest)

    def saved(self, line: RunPosition, key: ThreadKey, token: bytes) -> None:
        """The run saved to its thread; this is the newest now."""
        self._remember(key, replace(line, newest=token))

    def branched(self, line: RunPosition, key: ThreadKey, branch: str) -> None:
        """From now on, the run's saves go into another thread."""
        self._remember(key, replace(line, branch=branch))

    def saved_in_branch(self, key: ThreadKey, checkpoint_id: str, branch: str) -> None:
        """A checkpoint that the run believes to be in its thread is in a branch."""
        with self._lock:
            self._branched[key, checkpoint_id] = branch
            if len(self._branched) > BRANCHED_REMEMBERED:
                self._branched.popitem(last=False)

    def branch_of(self, key: ThreadKey, checkpoint_id: str) -> str | None:
        """The branch that such a checkpoint is in; it is about to be deleted."""
        with self._lock:
            return self._branched.pop((key, checkpoint_id), None)

    def _remember(self, key: ThreadKey, line: RunPosition) -> None:
        with self._lock:
            self._lines[key, line.name] = line
            self._lines.move_to_end((key, line.name))
            if len(self._lines) > LINES_REMEMBERED:
                self._lines.popitem(last=False)


def unstamped(state: AgentState) -> AgentState:
    """A state without a stamp, as it is stored."""
    if STAMP_KEY not in state.metadata:
        return state
    metadata = {name: value for name, value in state.metadata.items() if name != STAMP_KEY}
    return state.model_copy(update={"metadata": metadata})


def _read(stamp: object, key: ThreadKey) -> tuple[str, bytes | Literal[NoCheckpoint.NO_CHECKPOINT]] | None:
    """Name and newest checkpoint of a stamp, if it is of this thread."""
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
