"""Bytes stored for a conversation, against all its states stored whole, its final state, and its text."""

from __future__ import annotations

import asyncio

from locus_mysql import MySQLCheckpointer

from ..conversations import COMPACTED, ITERATIONS, PLAIN, conversation
from ..database import fresh_database
from ..disk import bytes_in_rows, bytes_in_text_columns

#: Number of turns. The longer a conversation, the smaller the share of whole states; this is enough to show a mistake.
#: The compacted conversation has two compactions in its turns.
TURNS = {PLAIN: 150, ITERATIONS: 40, COMPACTED: 110}


def figures(dsn: str) -> dict[str, float]:
    """Return the ratios, by kind of conversation."""
    found: dict[str, float] = {}
    for kind, turns in TURNS.items():
        with fresh_database(dsn) as own:
            found |= asyncio.run(_figures(own, kind, turns))
    return found


async def _figures(dsn: str, kind: str, turns: int) -> dict[str, float]:
    whole = final = said = 0
    async with MySQLCheckpointer(dsn=dsn) as checkpointer:
        async for _, state in conversation(kind, checkpointer, turns):
            final = len(state.model_dump_json().encode())
            whole += final
            said = sum(len(message.content or "") for message in state.messages if message.role.value != "system")
    stored = bytes_in_rows(dsn)
    found = {f"stored for each byte of whole states, {kind}": stored / whole}
    if kind == COMPACTED:  # most of what was said is not in the final state
        return found
    return found | {
        f"stored for each byte of the final state, {kind}": stored / final,
        f"text to index for each byte said, {kind}": bytes_in_text_columns(dsn) / said,
    }
