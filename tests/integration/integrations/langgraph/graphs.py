"""Graphs that tests run with the savers."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

from locus_mysql.integrations.langgraph import AsyncMySQLSaver

CONFIG: Any = {"configurable": {"thread_id": "thread"}}


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    count: int
    notes: dict[str, Any]


def chat() -> StateGraph[Any, Any, Any, Any]:
    """Return a graph that answers each message and counts them."""

    def answer(state: Chat) -> dict[str, Any]:
        question = state["messages"][-1].content
        return {"messages": [AIMessage(f"You said: {question}")], "count": state.get("count", 0) + 1}

    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder


def asking() -> StateGraph[Any, Any, Any, Any]:
    """Return a graph that interrupts twice for a person before it answers."""

    def ask(state: Chat) -> dict[str, Any]:
        first = interrupt("What is your name?")
        second = interrupt(f"{first}, how old are you?")
        return {"messages": [AIMessage(f"{first} is {second}")]}

    builder = StateGraph(Chat)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder


class Sum(TypedDict, total=False):
    numbers: list[int]
    squares: Annotated[list[int], operator.add]
    total: int


def fan_out() -> StateGraph[Any, Any, Any, Any]:
    """Return a graph that squares each number in a separate task and then adds them up."""

    def spread(state: Sum) -> list[Send]:
        return [Send("square", {"number": number}) for number in state["numbers"]]

    def square(state: dict[str, int]) -> dict[str, Any]:
        return {"squares": [state["number"] ** 2]}

    def add_up(state: Sum) -> dict[str, Any]:
        return {"total": sum(state["squares"])}

    builder = StateGraph(Sum)
    builder.add_node("square", square)
    builder.add_node("add_up", add_up)
    builder.add_conditional_edges(START, spread, ["square"])
    builder.add_edge("square", "add_up")
    builder.add_edge("add_up", END)
    return builder


def nested(checkpointer: Any = None) -> StateGraph[Any, Any, Any, Any]:
    """Return three nested graphs, the innermost of which interrupts for a person."""
    inner = asking().compile(checkpointer=checkpointer)

    def middle() -> Any:
        builder = StateGraph(Chat)
        builder.add_node("innermost", inner)
        builder.add_edge(START, "innermost")
        builder.add_edge("innermost", END)
        return builder.compile()

    builder = StateGraph(Chat)
    builder.add_node("within", middle())
    builder.add_edge(START, "within")
    builder.add_edge("within", END)
    return builder


class Steps(TypedDict):
    log: Annotated[list[str], operator.add]


def steps(count: int, fail_at: dict[str, int]) -> StateGraph[Any, Any, Any, Any]:
    """Return a sequence of nodes that count their runs and fail at those given in ``fail_at``."""
    builder = StateGraph(Steps)
    last = START
    for number in range(count):
        name = f"step{number}"

        def run(state: Steps, name: str = name) -> dict[str, Any]:
            fail_at[f"ran {name}"] = fail_at.get(f"ran {name}", 0) + 1
            if fail_at.get(name):
                fail_at[name] -= 1
                raise RuntimeError(name)
            return {"log": [name]}

        builder.add_node(name, run)
        builder.add_edge(last, name)
        last = name
    builder.add_edge(last, END)
    return builder


__all__ = ["Chat", "Command", "Steps", "Sum", "asking", "chat", "fan_out", "nested", "steps"]


class Running:
    """A compiled graph, called synchronously or asynchronously, depending on its saver."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self._awaited = isinstance(graph.checkpointer, AsyncMySQLSaver)

    async def __call__(self, given: Any, config: Any = CONFIG, **options: Any) -> Any:
        if self._awaited:
            return await self.graph.ainvoke(given, config, **options)
        return await asyncio.to_thread(self.graph.invoke, given, config, **options)

    async def state(self, config: Any = CONFIG) -> Any:
        return await self.graph.aget_state(config) if self._awaited else self.graph.get_state(config)

    async def history(self, config: Any = CONFIG) -> list[Any]:
        if self._awaited:
            return [state async for state in self.graph.aget_state_history(config)]
        return list(self.graph.get_state_history(config))
