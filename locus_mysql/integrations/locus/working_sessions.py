"""Chooses the session of each run of an agent: `WorkingSessions`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

from locus.core.events import RunInfo
from locus.tools.context import current_tool_context

from ...engine.at_fork import reset_at_fork
from ...errors import ConfigError
from ...families.working.store import SyncWorkingMemory, WorkingMemory

Memory: TypeAlias = WorkingMemory | SyncWorkingMemory

#: The number of runs whose sessions are remembered; the least recently used are forgotten first.
RUNS_REMEMBERED = 10_000


class WorkingSessions:
    """A session for each thread, or each user, of one agent that serves many. Used instead of one session.

    Both `working_memory_tools` and `WorkingMemoryHook` take it, and the agent needs both with the same one: Locus
    passes the thread of a run to hooks, not to tools.

    Args:
        choose: Called once per run, with its ``thread_id``, ``run_id`` and ``metadata``; returns its session, on a
            storage that all share.

    Example:
        ```python
        from locus_mysql.working import MySQLStorage

        storage = MySQLStorage("mysql://user:password@localhost/app")
        sessions = WorkingSessions(lambda run: WorkingMemory(run.thread_id, storage, tenant=run.metadata["user"]))
        agent = Agent(model=model, tools=working_memory_tools(sessions), hooks=[WorkingMemoryHook(sessions)])
        await agent.arun("Book the trip to Bonn.", thread_id="trip-42", metadata={"user": "ada"})
        ```
    """

    def __init__(self, choose: Callable[[RunInfo], Memory]) -> None:
        if not callable(choose):
            raise ConfigError(
                f"WorkingSessions takes a function that is given a run and returns its session, not "
                f"{type(choose).__name__}."
            )
        self._choose = choose
        self.reset_in_child()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork, replace the lock: a thread of the parent may hold it."""
        self._lock = threading.Lock()
        self._chosen: OrderedDict[str, Memory] = OrderedDict()

    def of(self, run: RunInfo | None) -> Memory:
        """Return the session of a run.

        Raises:
            ConfigError: There is none.
        """
        if run is None:
            raise ConfigError(
                "WorkingSessions needs the run of each hook call, and this hook was called without a run."
            )
        with self._lock:
            chosen = self._chosen.get(run.run_id)
        if chosen is None:
            chosen = self._choose(run)
            if not isinstance(chosen, Memory):
                raise ConfigError(
                    "The function given to WorkingSessions must return a WorkingMemory or SyncWorkingMemory, not "
                    f"{type(chosen).__name__}."
                )
        with self._lock:
            chosen = self._chosen.setdefault(run.run_id, chosen)
            self._chosen.move_to_end(run.run_id)
            if len(self._chosen) > RUNS_REMEMBERED:
                self._chosen.popitem(last=False)
        return chosen

    def of_this_tool_call(self) -> Memory:
        """Return the session of the run whose tool is being called.

        Raises:
            ConfigError: The run is unknown, because the agent has no hook with these sessions.
        """
        context = current_tool_context()
        with self._lock:
            chosen = None if context is None else self._chosen.get(context.run_id)
        if chosen is None:
            raise ConfigError(
                "No session is known for this run. Give the agent WorkingMemoryHook with the same WorkingSessions as "
                "its tools: the hook records which thread each run belongs to."
            )
        return chosen
