"""Example data of pages, of the families that `support_desk` lacks: graphs, transcripts, long and formatted threads."""

from __future__ import annotations

import contextlib
from typing import Any, TypedDict

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from ci.support_desk import message, state_after, tool_answer, tool_calling
from locus_mysql import CheckpointStore, Database, MySQLBackend
from locus_mysql.families.memories.store import MemoryStore
from locus_mysql.families.working.records import TaskState
from locus_mysql.families.working.store import WorkingMemory
from locus_mysql.integrations.langgraph import AsyncMySQLSaver
from locus_mysql.integrations.locus.agent_states import AgentDictOperations, AgentDicts
from locus_mysql.integrations.openai_agents import OpenAISession

#: The graph's threads: one that waits, one that failed, and one that is done.
WAITING, FAILED, DONE = "order-chairs", "order-desks", "order-lamps"

#: A conversation with formatted messages, and one of many messages.
FORMATTED, LONG = "weekly-report-47", "shift-log-2026-11"

#: Pages of this data.
DESK_PAGES = {
    "lists of graphs": "/?family=graphs",
    "a waiting graph": f"/inspect/thread?family=graphs&thread={WAITING}",
    "a failed graph": f"/inspect/thread?family=graphs&thread={FAILED}",
    "a transcript": "/inspect/thread?family=transcripts&thread=openai-agents%2F%2Fcustomer-7",
    "formatted messages": f"/inspect/thread?family=agents&thread={FORMATTED}",
    "changes of a thread": "/inspect/difference?family=dicts&thread=notes-of-ann&before=first&after=second",
    "growth": "/inspect/statistics?family=transcripts",
    "the tree of namespaces": "/inspect/memories",
    "an item": "/inspect/memory?key=jacket&namespace=%5B%22customers%22%2C%22mei.tanaka%22%2C%22orders%22%5D",
    "tasks": "/inspect/sessions",
    "a task": "/inspect/session?session=import-2026-11",
    "time zones": "/inspect/zone",
}

REPORT = """## Complaints, week 47

The number of complaints **fell by 12 %**. Three products cause half of them:

| product | complaints | change |
| --- | ---: | ---: |
| Tent Fjell 3 | 14 | +5 |
| Boots Vandre | 9 | -2 |
| Lamp *Lykt* | 6 | -7 |

1. The poles of the tent crack in frost; see [the report of the lab](https://example.com/lab/2026-47).
2. The boots squeak until they are waxed.
3. The lamp is `out of stock` since Tuesday.

```sql
SELECT product, COUNT(*) AS complaints
  FROM complaints
 WHERE week = 47
 GROUP BY product
 ORDER BY complaints DESC
```

> Anna asked for a refund of 349.00 EUR, which a colleague must approve.
"""


class Order(TypedDict):
    """What is ordered."""

    item: str
    count: int
    price: int


class State(MessagesState):
    """The state of the graph."""

    order: Order
    approved: bool


def _graph() -> Any:
    def plan(state: State) -> dict[str, Any]:
        order = state["order"]
        text = f"The cheapest offer for {order['count']} {order['item']} is {order['price']} EUR."
        call = {"id": "call_1", "name": "find_offer", "args": {"item": order["item"], "count": order["count"]}}
        usage = {"input_tokens": 180, "output_tokens": 40, "total_tokens": 220}
        return {
            "messages": [
                AIMessage("", tool_calls=[call], usage_metadata=usage),
                ToolMessage(f'{{"offers": 3, "best": {order["price"]}}}', tool_call_id="call_1", name="find_offer"),
                AIMessage(text, usage_metadata={"input_tokens": 260, "output_tokens": 30, "total_tokens": 290}),
            ]
        }

    def approve(state: State) -> dict[str, Any]:
        order = state["order"]
        if order["price"] < 100:
            return {"approved": True}
        return {"approved": interrupt(f"Order {order['count']} {order['item']} for {order['price']} EUR?")}

    def place(state: State) -> dict[str, Any]:
        if state["order"]["item"] == "desks":
            raise ConnectionError("The supplier's shop does not answer: timed out after 30 s.")
        return {"messages": [AIMessage(f"Ordered. The {state['order']['item']} arrive on Friday.")]}

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("approve", approve)
    graph.add_node("place", place)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "approve")
    graph.add_edge("approve", "place")
    graph.add_edge("place", END)
    return graph


async def fill_graphs(database: Database, tenant: str = "default") -> None:
    """Run the graph in three threads."""
    saver = AsyncMySQLSaver(database, tenant=tenant)
    graph = _graph().compile(checkpointer=saver)
    for thread, item, count, price in ((DONE, "lamps", 2, 58), (FAILED, "desks", 1, 90), (WAITING, "chairs", 4, 320)):
        question = f"We need {count} new {item} in Malmö. Please order them."
        asked = {
            "messages": [HumanMessage(question)],
            "order": {"item": item, "count": count, "price": price},
            "approved": False,
        }
        with contextlib.suppress(ConnectionError):
            await graph.ainvoke(asked, {"configurable": {"thread_id": thread}})


async def fill_transcripts(database: Database, tenant: str = "default") -> None:
    """Run an agent of the OpenAI Agents SDK."""
    answers = [[assistant_message("At the canal, next to the **harbour**.")], [assistant_message("From 8 to 17.")]]
    agent = Agent(name="guide", model=ScriptedModel(answers))
    session = OpenAISession("customer-7", database, tenant=tenant)
    for question in ("Where is the office?", "When is it open?"):
        await Runner.run(agent, question, session=session, run_config=RunConfig(tracing_disabled=True))


async def fill_others(database: Database, tenant: str = "default") -> None:
    """Save formatted and long conversations, plain and current states, memories and a session with a task."""
    agents = AgentDicts(AgentDictOperations(database.config.for_store(tenant=tenant)), database)
    messages = [
        message("user", "Which products had the most complaints this week?"),
        tool_calling("c1", "query", week=47),
    ]
    messages += [tool_answer("c1", "query", '{"rows": 29}'), message("assistant", REPORT)]
    for at in (2, 3, 4):
        new = agents.prepared(state_after(messages[:at], 0.6 + at / 20), f"report-{at}", {"channel": "internal"})
        agents.save_once(FORMATTED, new)
    long = []
    for hour in range(180):
        long.append(message("user", f"Hour {hour}: what happened in the warehouse?"))
        long.append(message("assistant", f"{hour % 7} parcels left, {hour % 3} were returned. " + "All is quiet. " * 4))
        if hour % 9 == 0 or hour > 175:
            new = agents.prepared(state_after(long, 0.5 + hour / 400), f"hour-{hour}", {"channel": "internal"})
            agents.save_once(LONG, new)
    failing = [message("user", "Print the labels of today's parcels."), tool_calling("p1", "print", labels=12)]
    state = state_after(failing, 0.2) | {"errors": ["Tool print failed: the printer is out of paper."]}
    agents.save_once("labels-2026-11-26", agents.prepared(state, "labels-1", {"channel": "internal"}))
    store = CheckpointStore(database, tenant=tenant)
    for count, name in enumerate(("first", "second"), 1):
        answer = f"I will remember the milk, the bread and the {'cheese' if count == 1 else 'butter'} for tomorrow."
        notes = [{"role": "user", "content": "Remember the milk."}, {"role": "assistant", "content": answer}]
        await store.save("notes-of-ann", {"messages": notes, "count": count}, name, {"user": "ann"})
    await MySQLBackend(database, tenant=tenant).save("counter", {"count": 7, "unit": "parcels"})
    memories = MemoryStore(database, tenant=tenant)
    for namespace, key, text in (
        (("customers", "jonas.weber"), "parcel", "Had a parcel that was delivered to a neighbour."),
        (("customers", "mei.tanaka", "orders"), "jacket", "Prefers size M, and black over green."),
        (("customers", "mei.tanaka", "orders"), "boots", "Returned boots in size 40; they were too narrow."),
        (("policies", "shipping"), "iceland", "Ships to Iceland. Customs cost 25 % above 20 EUR."),
    ):
        await memories.put(namespace, key, {"text": text, "source": "support"})
    working = WorkingMemory("import-2026-11", database, tenant=tenant)
    task = TaskState(
        task_id="import the catalogue",
        total_steps=8,
        data={"file": "catalogue.csv"},
        description="Reads rows of the catalogue",
    ).start()
    for _ in range(3):
        task = task.advance()
    await working.set_task_state(task)
    await working.set("rows", {"read": 4200, "written": 4188})
    await working.append_scratchpad("Twelve rows have no price; ask the supplier.")
    await working.create_checkpoint("before the prices")


async def fill_all_families(database: Database, tenant: str = "default") -> None:
    """Save all data of this module."""
    await fill_graphs(database, tenant)
    await fill_transcripts(database, tenant)
    await fill_others(database, tenant)
