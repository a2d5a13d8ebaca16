"""Nothing acknowledged is lost or doubled, and no call hangs, while the group fails under the load of 32 clients.

The clients use every side of every driver, directly and through MySQL Router, and every family of tables. Each fault
happens twice, ten times in the full run. The tables are printed, and written into docs/design/failover.md by:

    LOCUS_MYSQL_TEST_FULL=true .venv/bin/python ci/cluster --router run -- \
        .venv/bin/python -m pytest tests/cluster/test_under_load.py --write-load-table
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ..thoroughness import FULL
from .conftest import Group
from .faults import FAULTS
from .load import HANGS_AFTER_S, Load, Way
from .table import Row

CLIENTS = 32
ROUNDS = 10 if FULL else 2

#: Number of acknowledged writes of each client before a fault, and after it.
WRITES = 3


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(ROUNDS))
async def test_acknowledged_writes_outlive_a_fault_under_load(
    group: Group, ways: list[Way], fault: str, number: int, record_property: Any
) -> None:
    with ThreadPoolExecutor(2 * CLIENTS) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        load = Load(ways, CLIENTS, first=number * CLIENTS)
        load.start()
        await load.go_on(WRITES, HANGS_AFTER_S)
        await asyncio.to_thread(FAULTS[fault], group)
        await asyncio.to_thread(group.mend)
        await load.go_on(WRITES, HANGS_AFTER_S)
        await load.end()
        rows = [await outcome(load, fault, number, way) for way in ways]
        for way in ways:
            await way.database.aclose()
    for client in load.clients:
        for message in client.failed:
            record_property("failed", f"{fault}, {client.name} ({client.way.side}, {client.way.path}): {message}")
    for row in rows:
        record_property("load", tuple(row))
        assert (row.lost, row.doubled, row.stale, row.hung) == (0, 0, 0, 0), row[:-1]


async def outcome(load: Load, fault: str, number: int, way: Way) -> Row:
    """Sum up the results of the clients of one way."""
    clients = [client for client in load.clients if client.way is way]
    verdicts = [await client.check() for client in clients]
    waits = tuple(wait for client in clients for wait in client.waits)
    return Row(
        fault,
        way.side,
        way.path,
        number,
        acknowledged=sum(client.acknowledged for client in clients),
        lost=sum(verdict.lost for verdict in verdicts),
        doubled=sum(verdict.doubled for verdict in verdicts),
        stale=sum(len(client.stale) for client in clients),
        hung=sum(wait > HANGS_AFTER_S for wait in waits),
        failed=sum(len(client.failed) for client in clients),
        waits_s=waits,
    )
