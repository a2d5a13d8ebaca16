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

from locus_mysql.errors import LocusMySQLError

from ...thoroughness import FULL
from ..grouped_writes import BESIDE, Beside, group_writes
from .late import FAMILIES
from .late.stores import Case, Meanwhile, Stores, Tables
from .stage import Stage

pytestmark = pytest.mark.slow


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
    writes, meanwhile, prefix, _ = FAMILIES[family]
    tables = Tables(one, prefix, raw)
    found = {
        f"{name}, after {then.__name__}": changes(one, other, tables, case, then)
        for name, case in writes.items()
        for then in meanwhile
    }
    assert {name: changed for name, changed in found.items() if changed} == {}
