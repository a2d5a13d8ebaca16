"""Example data of pages: conversations of a shop's support desk, with calls of tools and a branch."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from typing import Any

from locus_mysql import Database
from locus_mysql.families.graphs.store import MySQLCheckpointSaver
from locus_mysql.families.memories.store import MemoryStore
from locus_mysql.families.working.store import WorkingMemory
from locus_mysql.integrations.locus.agent_states import AgentDictOperations, AgentDicts

#: The main thread, and the thread with a branch.
THREAD = "support-48213-anna.lindqvist"

State = dict[str, Any]


def message(role: str, content: str | None, **more: Any) -> State:
    """Return a message, as Locus stores it."""
    return {
        "role": role,
        "content": content,
        "tool_calls": [],
        "tool_call_id": None,
        "name": None,
        "metadata": {},
    } | more


def tool_calling(call_id: str, name: str, **arguments: Any) -> State:
    """Return a message that calls a tool."""
    return message("assistant", None, tool_calls=[{"id": call_id, "name": name, "arguments": arguments}])


def tool_answer(call_id: str, name: str, content: str) -> State:
    """Return a message with a tool's result."""
    return message("tool", content, tool_call_id=call_id, name=name)


BEGINNING = [
    message(
        "system",
        "You are the support agent of Nordlys Outdoor. Look an order up before you say anything about it. "
        "Refunds over 200 EUR need a colleague's approval.",
    ),
    message(
        "user",
        "Hello, my tent arrived on Thursday and one of the poles is cracked. The order is 48213. I leave on Saturday, "
        "so I need a new one before that, or my money back.",
    ),
    tool_calling("call_1", "find_order", order_id=48213),
    tool_answer(
        "call_1",
        "find_order",
        '{"order": 48213, "customer": "Anna Lindqvist", "item": "Tent Fjell 3", "price": "349.00 EUR", '
        '"delivered": "2026-11-19", "warranty": "24 months"}',
    ),
    tool_calling("call_2", "stock", item="Tent Fjell 3", part="pole set"),
    tool_answer("call_2", "stock", '{"pole set": 4, "warehouse": "Malmö", "ships": "same day until 15:00"}'),
    message(
        "assistant",
        "I am sorry about that, Anna. Your tent is under warranty, and we have four pole sets in Malmö. If I send one "
        "today it is with you on Friday, a day before you leave. Shall I do that, to the same address?",
    ),
]

REPLACED = [
    message("user", "Yes please! Same address. Do I have to send the broken one back?"),
    tool_calling("call_3", "create_shipment", order_id=48213, part="pole set", express=True),
    tool_answer("call_3", "create_shipment", '{"shipment": "SE-77120", "arrives": "2026-11-27", "price": "0.00 EUR"}'),
    message(
        "assistant",
        "Done. The pole set leaves today as shipment SE-77120 and arrives on Friday, free of charge. You can keep the "
        "broken pole; a photo of the crack is enough for us.",
    ),
    message("user", "Wonderful, thank you. Here is the photo: crack.jpg"),
    message("assistant", "Thank you, I have put it into your case. Have a good trip, Anna!"),
]

REFUNDED = [
    message("user", "Actually I found another tent nearby. Please refund me instead."),
    tool_calling("call_4", "refund", order_id=48213, amount="349.00 EUR"),
    tool_answer("call_4", "refund", "Refused: refunds over 200.00 EUR need approval."),
    message(
        "assistant",
        "That is fine. A refund of 349.00 EUR needs a colleague's approval, which I have asked for; you will have an "
        "answer by mail within the hour.",
    ),
]

OTHERS = {
    "support-48220-jonas.weber": ("Where is my parcel? It says delivered, but nothing is here.", "mail", 0.86),
    "support-48231-mei.tanaka": ("Can I change the size of the jacket to M before it ships?", "chat", 0.93),
    "returns-2026-11-22": ("Summarise today's returns by reason.", "internal", 0.71),
    "support-48219-lea.moreau": ("The invoice lacks our VAT number. Could you issue it again?", "mail", 0.9),
    "support-48207-omar.haddad": ("The boots are great, but the left one squeaks.", "chat", 0.64),
    "weekly-report-47": ("Which products had the most complaints this week?", "internal", 0.81),
    "support-48198-ida.berg": ("Do you ship to Iceland, and what does customs cost?", "chat", 0.95),
}


def state_after(messages: list[State], confidence: float) -> State:
    """Return the state of an agent with these messages."""
    turns = sum(one["role"] == "assistant" for one in messages)
    tokens = sum(len(str(one["content"] or one["tool_calls"])) for one in messages) * turns // 4
    calls = {call["id"]: call for one in messages for call in one["tool_calls"]}
    executed = [
        {
            "tool_call_id": one["tool_call_id"],
            "tool_name": one["name"],
            "arguments": calls[one["tool_call_id"]]["arguments"],
            "result": None if one["content"].startswith("Refused") else one["content"],
            "error": one["content"] if one["content"].startswith("Refused") else None,
        }
        for one in messages
        if one["role"] == "tool"
    ]
    return {
        "agent_id": "support",
        "messages": copy.deepcopy(messages),
        "iteration": turns,
        "max_iterations": 20,
        "tool_executions": executed,
        "confidence": confidence,
        "total_tokens_used": tokens,
        "metadata": {"customer": {"tier": "gold", "language": "en"}},
        "errors": [],
    }


def turns_of(messages: list[State]) -> Iterator[int]:
    """Return the numbers of messages at which a run saves: after each message of the agent."""
    for at, one in enumerate(messages, 1):
        if one["role"] in {"assistant", "tool"}:
            yield at


async def fill(database: Database, tenant: str = "default") -> AsyncIterator[tuple[str, str]]:
    """Save all data; return thread and id of each checkpoint of an agent, in the order of saving."""
    agents = AgentDicts(AgentDictOperations(database.config.for_store(tenant=tenant)), database)
    metadata = {"channel": "chat", "order": 48213, "language": "en"}
    for name, (question, channel, confidence) in OTHERS.items():
        messages = [message("user", question), message("assistant", "Let me look that up for you.")]
        new = agents.prepared(state_after(messages, confidence), f"{name[:16]}-1", {"channel": channel})
        yield name, agents.save_once(name, new)
    kept = 0
    fork = ""
    for messages, step in ((BEGINNING + REPLACED, "a"), (BEGINNING + REFUNDED, "b")):
        parent = fork or None  # the second branch continues from there
        for at in turns_of(messages):
            if step == "b" and at <= len(BEGINNING):
                continue
            kept += 1
            sure = min(0.97, 0.42 + 0.05 * kept) if step == "a" else 0.6 + 0.02 * (at - len(BEGINNING))
            state = state_after(messages[:at], round(sure, 2))
            new = agents.prepared(state, f"01HZX9{step.upper()}{kept:02d}K3", metadata, parent)
            parent = None
            saved = agents.save_once(THREAD, new)
            fork = saved if at == len(BEGINNING) else fork
            yield THREAD, saved


async def fill_the_rest(database: Database, tenant: str = "default") -> None:
    """Save long-term memories, a graph's thread, and a session."""
    memories = MemoryStore(database, tenant=tenant)
    await memories.put(("customers", "anna.lindqvist"), "language", {"text": "Writes in English, lives in Lund."})
    await memories.put(("customers", "anna.lindqvist"), "tent", {"text": "Owns a tent Fjell 3, bought in November."})
    await memories.put(("policies",), "refunds", {"text": "Refunds over 200 EUR need approval.", "since": "2025-01-01"})
    graphs = MySQLCheckpointSaver(database, tenant=tenant)
    parent = None
    for step in range(3):
        data = {
            "channel_values": {"messages": [{"type": "human", "content": f"Step {step} of the graph"}], "step": step}
        }
        await graphs.put(
            thread_id="graph-triage-7", checkpoint_id=f"step-{step}", checkpoint_data=data, parent_checkpoint_id=parent
        )
        parent = f"step-{step}"
    working = WorkingMemory("triage-7", database, tenant=tenant)
    await working.set("order", {"id": 48213, "state": "delivered"})
    await working.set("attempts", 2)
