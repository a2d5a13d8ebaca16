"""The graph of the chapter on LangGraph: it quotes a price, asks a human, and orders."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

PRICES = {"a chair": 80, "a table": 250}


class Order(TypedDict, total=False):
    """The state of the graph. The log grows."""

    item: str
    price: int
    approved: bool
    log: Annotated[list[str], operator.add]


def quote(state: Order) -> Order:
    """Look up the price."""
    price = PRICES[state["item"]]
    return {"price": price, "log": [f"quoted {price}"]}


def approve(state: Order) -> Order:
    """Ask a human: the graph stops here, and continues with the answer in any process."""
    approved = interrupt(f"{state['item']} for {state['price']}?") == "yes"
    return {"approved": approved, "log": ["approved" if approved else "declined"]}


def order(state: Order) -> Order:
    """Order, or cancel."""
    return {"log": [f"ordered {state['item']}" if state["approved"] else "nothing ordered"]}


def compiled(saver: BaseCheckpointSaver[Any]) -> Any:
    """Return the graph with a checkpointer."""
    builder = StateGraph(Order)
    previous = START
    for node in (quote, approve, order):
        builder.add_node(node.__name__, node)
        builder.add_edge(previous, node.__name__)
        previous = node.__name__
    return builder.compile(checkpointer=saver)


def thread(thread_id: str) -> RunnableConfig:
    """Return a thread's LangGraph config."""
    return {"configurable": {"thread_id": thread_id}}
