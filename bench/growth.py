"""Bytes on disk and bytes on the wire, turn by turn, over a long conversation of a real agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Any

from locus.memory.backends.adapters import mysql_checkpointer as built_in_checkpointer
from locus.memory.checkpointer import BaseCheckpointer

from locus_mysql import MySQLCheckpointer
from tests.integration.proxy import Count

from .conversations import COMPACTED, ITERATIONS, PLAIN, THREAD, conversation
from .database import fresh_database
from .disk import bytes_in_files, bytes_in_rows
from .markdown import markdown_table
from .wire import CountingProxy

TURNS = 1_000
MEASURED_AT = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)

#: Turns of the built-in's own conversation. With iteration saves, 1,000 turns would take it half an hour.
BUILT_IN_TURNS = {PLAIN: 1_000, ITERATIONS: 200, COMPACTED: 1_000}

#: In quick mode, for all.
QUICK_TURNS = 20


@dataclass
class Growth:
    """One conversation, sampled after some of its turns. Bytes stored are those of columns, without indexes."""

    turns: list[int] = field(default_factory=list)
    #: What `get_disk_usage` says, and what the server says of all columns and of the files, indexes included.
    stored_bytes: list[int] = field(default_factory=list)
    row_bytes: list[int] = field(default_factory=list)
    file_bytes: list[int] = field(default_factory=list)
    #: What this turn sent and received: it loads the state, which grows, and saves what is new.
    wire_bytes_per_turn: list[int] = field(default_factory=list)
    sent_bytes_per_turn: list[int] = field(default_factory=list)
    #: All states so far, had each turn's last been stored whole, and the newest.
    whole_states_bytes: list[int] = field(default_factory=list)
    final_state_bytes: list[int] = field(default_factory=list)
    #: The built-in's columns, files and wire in its own conversation, which may be shorter.
    builtin_bytes: list[int] = field(default_factory=list)
    builtin_file_bytes: list[int] = field(default_factory=list)
    builtin_wire_bytes_per_turn: list[int] = field(default_factory=list)
    builtin_sent_bytes_per_turn: list[int] = field(default_factory=list)


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """All three conversations, with this project and with the built-in; each in a database of its own."""
    result = {}
    for kind in (PLAIN, ITERATIONS, COMPACTED):
        with fresh_database(dsn) as own:
            growth = asyncio.run(measure_ours(own, kind, QUICK_TURNS if quick else TURNS))
        with fresh_database(dsn) as own:
            asyncio.run(measure_built_in(own, kind, QUICK_TURNS if quick else BUILT_IN_TURNS[kind], growth))
        result[kind] = asdict(growth)
    return result


@dataclass(frozen=True)
class Sample:
    """A conversation right after one of its turns."""

    turn: int
    traffic: Count
    final_bytes: int
    whole_bytes: int


async def sampled(kind: str, checkpointer: BaseCheckpointer, proxy: CountingProxy, turns: int) -> AsyncIterator[Sample]:
    """Have a conversation by way of a proxy, and stop at some of its turns."""
    whole = 0
    talk = conversation(kind, checkpointer, turns)
    while True:
        with proxy.counting() as traffic:
            ended = await anext(talk, None)
        if ended is None:
            return
        turn, state = ended
        final = len(state.model_dump_json().encode())
        whole += final
        if turn in MEASURED_AT or turn == turns:
            yield Sample(turn, traffic, final, whole)


async def measure_ours(dsn: str, kind: str, turns: int) -> Growth:
    """Have a conversation with this project's checkpointer, in an empty database."""
    growth = Growth()
    with CountingProxy(dsn) as proxy:
        async with MySQLCheckpointer(dsn=proxy.dsn, ssl_mode="DISABLED") as checkpointer:
            async for sample in sampled(kind, checkpointer, proxy, turns):
                growth.turns.append(sample.turn)
                growth.whole_states_bytes.append(sample.whole_bytes)
                growth.final_state_bytes.append(sample.final_bytes)
                growth.wire_bytes_per_turn.append(sample.traffic.bytes_sent + sample.traffic.bytes_received)
                growth.sent_bytes_per_turn.append(sample.traffic.bytes_sent)
                growth.stored_bytes.append(await checkpointer.get_disk_usage(THREAD))
                growth.row_bytes.append(bytes_in_rows(dsn))
                growth.file_bytes.append(bytes_in_files(dsn))
    return growth


async def measure_built_in(dsn: str, kind: str, turns: int, growth: Growth) -> None:
    """The same with Locus' built-in checkpointer."""
    with CountingProxy(dsn) as proxy:
        checkpointer = built_in_checkpointer(dsn=f"{proxy.dsn}?ssl_disabled=true")
        async for sample in sampled(kind, checkpointer, proxy, turns):
            growth.builtin_bytes.append(bytes_in_rows(dsn))
            growth.builtin_file_bytes.append(bytes_in_files(dsn))
            growth.builtin_wire_bytes_per_turn.append(sample.traffic.bytes_sent + sample.traffic.bytes_received)
            growth.builtin_sent_bytes_per_turn.append(sample.traffic.bytes_sent)
        await checkpointer.close()


def table(result: dict[str, Any]) -> str:
    """One table for each conversation, and what the built-in takes beside it."""
    return "\n\n".join(f"{kind}\n\n{_table(Growth(**growth))}" for kind, growth in result.items())


def _table(growth: Growth) -> str:
    headings = [
        *("turns", "stored, MB", "of whole states", "times final state", "files, MB", "wire, KB/turn", "sent, KB/turn"),
        *("built-in: MB", "files, MB", "wire, KB/turn", "sent, KB/turn"),
    ]
    rows = []
    for place, turns in enumerate(growth.turns):
        stored = growth.stored_bytes[place]
        row = [
            str(turns),
            f"{stored / 1e6:.3f}",
            f"1/{growth.whole_states_bytes[place] / stored:.1f}",
            f"{stored / growth.final_state_bytes[place]:.2f}",
            f"{growth.file_bytes[place] / 1e6:.2f}",
            f"{growth.wire_bytes_per_turn[place] / 1e3:.1f}",
            f"{growth.sent_bytes_per_turn[place] / 1e3:.1f}",
        ]
        for figures, unit in (
            (growth.builtin_bytes, 1e6),
            (growth.builtin_file_bytes, 1e6),
            (growth.builtin_wire_bytes_per_turn, 1e3),
            (growth.builtin_sent_bytes_per_turn, 1e3),
        ):
            row.append(f"{figures[place] / unit:.1f}" if place < len(figures) else "not measured")
        rows.append(row)
    return markdown_table(headings, rows)
