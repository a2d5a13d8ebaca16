"""A long conversation, saved turn by turn, and the size of its states if each were stored whole."""

from __future__ import annotations

import random
from dataclasses import dataclass

from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..database import Database

THREAD = "long"
TURNS = 500
MEASURED_AT = (10, 100, TURNS)

_WORDS = [
    "order",
    "coffee",
    "grinder",
    "filter",
    "kettle",
    "paper",
    "cup",
    "roast",
    "bean",
    "water",
    "price",
    "delivery",
    "monday",
    "tuesday",
    "refund",
    "invoice",
    "address",
    "street",
    "number",
    "colour",
    "silver",
    "black",
    "warranty",
    "manual",
    "repair",
    "letter",
    "morning",
    "evening",
    "customer",
    "question",
    "answer",
    "pressure",
    "pump",
    "boiler",
    "steam",
    "milk",
    "crema",
    "spare",
    "part",
    "seal",
    "basket",
    "handle",
    "scale",
    "timer",
]


@dataclass(frozen=True)
class Measure:
    """A conversation's size after some turns."""

    turns: int
    stored_bytes: int
    whole_bytes: int
    loads_exactly: bool


async def converse(checkpointer: MySQLCheckpointer, database: Database) -> list[Measure]:
    """Save a conversation after each of its turns, and measure it after some of them.

    Every turn has a question and an answer of 25 random words each, so that nothing repeats.
    """
    words = random.Random(7)  # noqa: S311 - the same words every time; guards no secret
    state = AgentState().with_message(Message.system("You serve the customers of a coffee shop."))
    saved: dict[str, AgentState] = {}
    kept = {1, TURNS // 2, TURNS}
    whole_bytes = 0
    measures = []
    for turn in range(1, TURNS + 1):
        state = state.with_messages([Message.user(_sentence(words)), Message.assistant(_sentence(words))])
        checkpoint_id = await checkpointer.save(state, THREAD)
        whole_bytes += len(state.model_dump_json())
        if turn in kept:
            saved[checkpoint_id] = state
        if turn in MEASURED_AT:
            exact = all([await checkpointer.load(THREAD, one) == held for one, held in saved.items()])
            measures.append(Measure(turn, await database.stored_bytes(THREAD), whole_bytes, exact))
    return measures


def _sentence(words: random.Random) -> str:
    return " ".join(words.choices(_WORDS, k=25)).capitalize() + "."
