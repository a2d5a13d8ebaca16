"""Which session a run of an agent has: `WorkingSessions`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

from locus.core.events import RunInfo
from locus.tools.context import current_tool_context

from ...engine.at_fork import tell_at_fork
from ...errors import ConfigError
from ...families.working.memory import SyncWorkingMemory, WorkingMemory

Memory: TypeAlias = WorkingMemory | SyncWorkingMemory

#: Runs whose sessions are remembered; those that were asked for longest ago are forgotten first.
RUNS_REMEMBERED = 10_000


class WorkingSessions:
    """A session for each thread, or each user, of one agent that serves many. Given in the place of one session.

    Both `working_memory_tools` and `WorkingMemoryHook` take it, and the agent needs both with the same one: Locus tells
    hooks, not tools, of which thread a run is.

    Args:
        choose: Called once a run, with ``thread_id``, ``run_id`` and ``metadata`` of it; returns its session, on a
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
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: a lock that a thread of the parent holds is not this process's."""
        self._lock = threading.Lock()
        self._chosen: OrderedDict[str, Memory] = OrderedDict()

    def of(self, run: RunInfo | None) -> Memory:
        """The session of a run.

        Raises:
            ConfigError: There is none.
        """
        if run is None:
            raise ConfigError("WorkingSessions needs to know of which run a hook is told; this one was told of none.")
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
        """The session of the run whose tool is being called.

        Raises:
            ConfigError: Nobody told of that run.
        """
        context = current_tool_context()
        with self._lock:
            chosen = None if context is None else self._chosen.get(context.run_id)
        if chosen is None:
            raise ConfigError(
                "No session is known for this run. Give the agent WorkingMemoryHook with the same WorkingSessions as "
                "its tools: it tells of which thread a run is."
            )
        return chosen
