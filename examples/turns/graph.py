"""The graph of the chapter on turns: it looks an order up, and refunds it; a refund takes as long as it is told."""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph


class Refund(TypedDict, total=False):
    """The state of the graph."""

    log: Annotated[list[str], operator.add]


def compiled(saver: BaseCheckpointSaver[Any], refunding: Callable[[], Awaitable[Any]]) -> Any:
    """Return the graph with a checkpointer; the second node awaits ``refunding``."""

    async def look_up(_: Refund) -> Refund:
        return {"log": ["looked up"]}

    async def refund(_: Refund) -> Refund:
        await refunding()
        return {"log": ["refunded"]}

    builder: Any = StateGraph(Refund)
    builder.add_node("look_up", look_up)
    builder.add_node("refund", refund)
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", "refund")
    return builder.compile(checkpointer=saver)


def thread(thread_id: str) -> Any:
    """Return a thread's LangGraph config."""
    return {"configurable": {"thread_id": thread_id}}
