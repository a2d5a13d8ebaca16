"""Refuses blocking calls by Locus' coroutines: `refuse_agents`."""

from __future__ import annotations

import inspect
import sys

from ...errors import ConfigError


def refuse_agents(kind: str, depth: int) -> None:
    """Refuse a blocking call by a coroutine of Locus, which would await a result that is not awaitable.

    An `Agent` accepts any object as its checkpointer and calls no method of it before its first turn. In a coroutine of
    your own, or in a notebook, a blocking call may be intended, so those are not refused.

    Args:
        kind: The class, for the message.
        depth: The number of calls between the caller and this function.

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
