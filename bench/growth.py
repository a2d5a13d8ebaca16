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

#: Turns of the built-in backend's conversation. With iteration saves, 1,000 turns would take half an hour.
BUILT_IN_TURNS = {PLAIN: 1_000, ITERATIONS: 200, COMPACTED: 1_000}

#: Turns in quick mode, for all contestants.
QUICK_TURNS = 20


@dataclass
class Growth:
    """Samples of one conversation after some of its turns. Bytes stored are those of columns, without indexes."""

    turns: list[int] = field(default_factory=list)
    #: The result of `get_disk_usage`; the server's counts of bytes in all columns, and in the files with indexes.
    stored_bytes: list[int] = field(default_factory=list)
    row_bytes: list[int] = field(default_factory=list)
    file_bytes: list[int] = field(default_factory=list)
    #: Bytes that this turn sent and received: it loads the state, which grows, and saves the new messages.
    wire_bytes_per_turn: list[int] = field(default_factory=list)
    sent_bytes_per_turn: list[int] = field(default_factory=list)
    #: Bytes of all states so far, if the last state of each turn were stored whole; and of the newest state.
    whole_states_bytes: list[int] = field(default_factory=list)
    final_state_bytes: list[int] = field(default_factory=list)
    #: Columns, files and wire of the built-in backend in its own conversation, which may be shorter.
    builtin_bytes: list[int] = field(default_factory=list)
    builtin_file_bytes: list[int] = field(default_factory=list)
    builtin_wire_bytes_per_turn: list[int] = field(default_factory=list)
    builtin_sent_bytes_per_turn: list[int] = field(default_factory=list)


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure all three conversations, with this project and the built-in backend, each in its own database."""
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
    """A conversation directly after one of its turns."""

    turn: int
    traffic: Count
    final_bytes: int
    whole_bytes: int


async def sampled(kind: str, checkpointer: BaseCheckpointer, proxy: CountingProxy, turns: int) -> AsyncIterator[Sample]:
    """Run a conversation through a proxy, and yield after some of its turns."""
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
    """Run a conversation with this project's checkpointer, in an empty database."""
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
    """Run a conversation with Locus' built-in checkpointer, in an empty database."""
    with CountingProxy(dsn) as proxy:
        checkpointer = built_in_checkpointer(dsn=f"{proxy.dsn}?ssl_disabled=true")
        async for sample in sampled(kind, checkpointer, proxy, turns):
            growth.builtin_bytes.append(bytes_in_rows(dsn))
            growth.builtin_file_bytes.append(bytes_in_files(dsn))
            growth.builtin_wire_bytes_per_turn.append(sample.traffic.bytes_sent + sample.traffic.bytes_received)
            growth.builtin_sent_bytes_per_turn.append(sample.traffic.bytes_sent)
        await checkpointer.close()


def table(result: dict[str, Any]) -> str:
    """Return a table for each conversation, with the figures of the built-in backend."""
    return "\n\n".join(f"{kind}\n\n{_table(Growth(**growth))}" for kind, growth in result.items())


def _table(growth: Growth) -> str:
    headings = [
        *("turns", "stored, MB", "of whole states", "times final state", "files, MB", "wire, KB/turn", "sent, KB/turn"),
        *("built-in: MB", "files, MB", "wire, KB/turn", "sent, KB/turn"),
    ]
    rows = []
    for index, turns in enumerate(growth.turns):
        stored = growth.stored_bytes[index]
        row = [
            str(turns),
            f"{stored / 1e6:.3f}",
            f"1/{growth.whole_states_bytes[index] / stored:.1f}",
            f"{stored / growth.final_state_bytes[index]:.2f}",
            f"{growth.file_bytes[index] / 1e6:.2f}",
            f"{growth.wire_bytes_per_turn[index] / 1e3:.1f}",
            f"{growth.sent_bytes_per_turn[index] / 1e3:.1f}",
        ]
        for figures, unit in (
            (growth.builtin_bytes, 1e6),
            (growth.builtin_file_bytes, 1e6),
            (growth.builtin_wire_bytes_per_turn, 1e3),
            (growth.builtin_sent_bytes_per_turn, 1e3),
        ):
            row.append(f"{figures[index] / unit:.1f}" if index < len(figures) else "not measured")
        rows.append(row)
    return markdown_table(headings, rows)
