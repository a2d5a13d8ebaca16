"""Who calls a blocking checkpointer: `refuse_agents`."""

from __future__ import annotations

import inspect
import sys

from ...errors import ConfigError


def refuse_agents(kind: str, depth: int) -> None:
    """Refuse a blocking call by one of Locus' coroutines: it would await what is no awaitable, after the call was made.

    An `Agent` takes any object as its checkpointer and asks nothing of it before its first turn loads the thread. In a
    coroutine of one's own, or in a notebook, a blocking call may be meant.

    Args:
        kind: The class, for the message.
        depth: How many calls lie between the caller and this function.

    Raises:
        ConfigError: The caller is a coroutine of the Locus SDK.
    """
    caller = sys._getframe(depth + 1)
    module = caller.f_globals.get("__name__", "")
    if module.partition(".")[0] == "locus" and caller.f_code.co_flags & inspect.CO_COROUTINE:
        raise ConfigError(
            f"{kind} blocks, and Locus awaits its checkpointer. Give the agent a {kind.removeprefix('Sync')}: "
            "agent.run_sync() works with it too."
        )
