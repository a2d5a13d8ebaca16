"""Late packets of every family's writes, which arrive after the call was repeated and other processes have written.

A connection breaks before a packet arrives; the call is repeated and ends; other processes write or delete. Then the
server receives the packet. If the call has changed something, the packet must change no table: a write is done once. A
late packet of a call that was refused is an ordinary write, whose conditions are checked when it arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pymysql
import pytest

from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.errors import LocusMySQLError

from ...thoroughness import FULL
from ..engines import ENGINE
from ..grouped_writes import BESIDE, Beside, group_writes
from .late.checkpoints import CHECKPOINTS, CHECKPOINTS_MEANWHILE
from .late.graphs import GRAPHS, GRAPHS_MEANWHILE
from .late.memories import MEMORIES, item_deleted, item_put_again, item_put_anew
from .late.memu import MEMU, RECALL, memu_cleared, memu_goes_on, memu_unlinked, recall_cleared, recall_goes_on
from .late.stores import Case, Meanwhile, Stores
from .late.transcripts import TRANSCRIPTS, transcript_deleted, transcript_goes_on, transcript_made_anew
from .late.turns import TURNS, turn_goes_back, turn_goes_round
from .late.working import WORKING, session_ended, session_goes_on, session_made_anew
from .stage import Stage

pytestmark = pytest.mark.slow

#: The writes of each family, the writes of other processes meanwhile, and the prefix of its tables.
FAMILIES: dict[str, tuple[dict[str, Case], Sequence[Meanwhile], str]] = {
    "checkpoints": (CHECKPOINTS, CHECKPOINTS_MEANWHILE, "locus_store_"),
    "turns": (TURNS, (turn_goes_round, turn_goes_back), "locus_store_"),
    "graphs": (GRAPHS, GRAPHS_MEANWHILE, "locus_graph_"),
    "memories": (MEMORIES, (item_put_again, item_put_anew, item_deleted), "locus_memory_"),
    "working": (WORKING, (session_goes_on, session_made_anew, session_ended), "locus_working_"),
    "transcripts": (
        TRANSCRIPTS,
        (transcript_goes_on, transcript_made_anew, transcript_deleted),
        "locus_transcript",
    ),
    "memu": (MEMU, (memu_goes_on, memu_unlinked, memu_cleared), "memu_"),
    "recall": (RECALL, (recall_goes_on, recall_cleared), "memu_"),
}


class Tables:
    """The tables of one family.

    Args:
        raw: A connection that has the schema selected.
        prefix: The prefix of their names.
    """

    def __init__(self, raw: pymysql.Connection[Any], prefix: str) -> None:
        self._raw = raw
        raw.autocommit(True)
        self._names = [name for (name,) in self._rows("SHOW TABLES") if name.startswith(prefix)]
        assert self._names, f"there are no tables named {prefix}…"
        self._rows("SET FOREIGN_KEY_CHECKS = 0")

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table."""
        return {name: sorted(self._rows(f"SELECT * FROM {name}"), key=repr) for name in self._names}

    def empty(self) -> None:
        """Remove all rows."""
        for name in self._names:
            self._rows(f"DELETE FROM {name}")

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._raw.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())


def changes(one: Stores, other: Stores, tables: Tables, case: Case, then: Meanwhile) -> list[str]:
    """Deliver each packet of a call late, and return the tables that it changed."""
    prepare, begin = case
    found: list[str] = []
    for packets in range(20):
        tables.empty()
        one.begin_anew()
        if prepare is not None:
            prepare(one)
        at_first = tables.contents()
        call = begin(one)
        for _ in range(packets):
            if not call.done:
                call.step()
        if call.done:
            with suppress(LocusMySQLError):
                call.finish()
            assert packets, "the call sent nothing"
            return found
        if all(statement.brings_rows for statement in call.packet):
            with suppress(LocusMySQLError):
                call.finish()
            continue
        arrive = call.delay_request()
        with suppress(LocusMySQLError):
            call.finish()
        if tables.contents() == at_first:
            continue
        other.made = one.made
        with suppress(LocusMySQLError):
            then(other)
        before = tables.contents()
        arrive()
        after = tables.contents()
        found += [f"{table} by packet {packets}" for table in before if before[table] != after[table]]
    raise AssertionError("The call never ended.")


@pytest.mark.parametrize("beside", [(), *((one,) for one in BESIDE)] if FULL else [(), BESIDE], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_repeated_or_late_packet_of_a_write_that_was_carried_out_changes_nothing(
    stage: Stage, raw: pymysql.Connection[Any], family: str, beside: Sequence[Beside], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covers each packet of each write, alone or in a group, after each kind of later write.

    In short runs, the groups' other writes change in turns; full runs have a test for each of them.
    """
    if beside:
        group_writes(monkeypatch, *beside)
    one, other = Stores(stage), Stores(stage)
    writes, meanwhile, prefix = FAMILIES[family]
    # Creating the first process of these families creates their tables.
    {
        "graphs": lambda: one.saver,
        "memories": lambda: one.memories,
        "transcripts": lambda: one.transcripts,
    }.get(family, lambda: one.store)()
    with raw.cursor() as cursor:
        for schema in {"working": [one.working.schema], "memu": [one.memu.schema], "recall": [one.memu.schema]}.get(
            family, []
        ):
            for statement in schema.create():
                cursor.execute((OCEANBASE.statement(statement) if ENGINE == "oceanbase" else statement).sql)
    raw.commit()
    tables = Tables(raw, prefix)
    found = {
        f"{name}, after {then.__name__}": changes(one, other, tables, case, then)
        for name, case in writes.items()
        for then in meanwhile
    }
    assert {name: changed for name, changed in found.items() if changed} == {}
