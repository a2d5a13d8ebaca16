"""Every fault of the network or the server, during calls on every family and every framework's records, on each driver.

The calls have the results, and leave behind what they leave without a fault: `Witness` counts each difference.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from locus_mysql import MySQLConfig
from locus_mysql.errors import Unavailable
from locus_mysql.families.registry import families
from locus_mysql.inspection import Inspector

from ..integration.conftest import EVERY_SIDE, ONE_OF_EACH, MakeConfig
from ..integration.connecting import connect
from ..integration.proxy import WireProxy
from ..thoroughness import FULL
from .faults import FAULTS, Trouble, timeout_of
from .table import Row
from .workloads import WORKLOADS, Workload

pytestmark = pytest.mark.slow

#: Deadline of a call in seconds; the timeout of its last attempt may exceed it.
RETRY_DEADLINE_S = 10.0

#: In short runs, each workload meets one in this many faults, every one other faults, so that all are tried.
ONE_IN = 1 if FULL else 5

#: The result of an unacknowledged call.
UNKNOWN = object()


class Witness:
    """Counts the outcomes of the calls of one workload under one fault.

    Args:
        row: Where the counts begin.
        expected: For each call, its result and what is stored afterwards, in a run without faults.
    """

    def __init__(self, row: Row, expected: Sequence[tuple[Any, Any]]) -> None:
        self.row = row
        self._expected = expected

    async def watch(self, number: int, call: Callable[[], Awaitable[Any]]) -> None:
        """Make a call, and compare its result; the server could not be reached within the deadline: count that."""
        self._count(attempts=1)
        began = time.monotonic()
        try:
            outcome = await call()
        except Unavailable:
            outcome = UNKNOWN
        self.row = self.row._replace(longest_s=max(self.row.longest_s, time.monotonic() - began))
        if outcome is not UNKNOWN:
            if outcome != self._expected[number][0]:
                print(self.row.fault, "call", number, "returned", outcome, "instead of", self._expected[number][0])
            self._count(acknowledged=1, wrong=int(outcome != self._expected[number][0]))

    def look(self, number: int, stored: Any) -> None:
        """Compare what another process finds after a call."""
        if stored != self._expected[number][1]:
            print(self.row.fault, "after call", number, "found", stored, "instead of", self._expected[number][1])
        self._count(lost=int(stored != self._expected[number][1]))

    def _count(self, **more: int) -> None:
        self.row = self.row._replace(**{name: getattr(self.row, name) + number for name, number in more.items()})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try each workload with the sides of its stores: all of them, or in short runs without a table, two."""
    if "workload" in metafunc.fixturenames:
        every = FULL or metafunc.config.getoption("write_faults_table")
        cases = [
            pytest.param(workload, side, id=f"{workload.__name__}-{side}")
            for workload in WORKLOADS
            for side in (EVERY_SIDE if every else ONE_OF_EACH)
            if workload.stores.of(side) is not None
        ]
        metafunc.parametrize(("workload", "side"), cases)


@contextmanager
def connected(dsn: str) -> Iterator[pymysql.Connection[Any]]:
    """An administrator's connection."""
    with connect(MySQLConfig(dsn=dsn)) as connection:
        yield connection


@pytest.mark.both_sides
async def test_no_fault_loses_a_write_or_returns_a_wrong_result(
    make_config: MakeConfig,
    server_dsn: str,
    database: str,
    record_property: Callable[[str, object], None],
    workload: type[Workload],
    side: str,
) -> None:
    driver = side.rpartition("-")[0]
    expected, counts = await _undisturbed(workload, make_config(driver=driver, tenant="undisturbed"), side)
    server = MySQLConfig(dsn=server_dsn)
    for number, fault in enumerate(FAULTS):
        if (number + WORKLOADS.index(workload)) % ONE_IN:
            continue
        config = make_config(driver=driver, tenant=f"fault-{number}")
        witness = Witness(Row(fault, side, workload.title, 0, 0, 0, 0, 0.0), expected)
        with WireProxy(server.host, server.port) as proxy, connected(server_dsn) as administrator:
            await _disturbed(workload, config, side, witness, proxy, administrator)
        record_property("faults", (number, WORKLOADS.index(workload), *witness.row))
        assert (witness.row.lost, witness.row.wrong) == (0, 0), witness.row
        assert witness.row.acknowledged == witness.row.attempts, witness.row
        assert witness.row.longest_s < RETRY_DEADLINE_S + timeout_of(fault), witness.row
        assert await _counts(workload, config) == counts, witness.row


async def _undisturbed(workload: type[Workload], config: MySQLConfig, side: str) -> tuple[list[tuple[Any, Any]], Any]:
    """Return each call's result with what is stored afterwards, and what the family counts in the end."""
    calm, observer = workload(config, side), workload(config, side)
    try:
        await observer.stored()
        expected = [(await call(), await observer.stored()) for call in calm.calls()]
    finally:
        await calm.close()
        await observer.close()
    return expected, await _counts(workload, config)


async def _disturbed(
    workload: type[Workload],
    config: MySQLConfig,
    side: str,
    witness: Witness,
    proxy: WireProxy,
    administrator: pymysql.Connection[Any],
) -> None:
    """Make the calls through a proxy with the fault in each, and watch them from another process."""
    fault, timeout_s = witness.row.fault, timeout_of(witness.row.fault)
    options = {
        **{"host": "127.0.0.1", "port": proxy.port, "ssl_mode": "DISABLED", "connect_timeout_s": 5},
        **{"read_timeout_s": timeout_s, "write_timeout_s": timeout_s, "retry_deadline_s": RETRY_DEADLINE_S},
    }
    observer, disturbed = workload(config, side), workload(_with(config, **options), side)
    try:
        await observer.stored()
        trouble = Trouble(proxy, administrator, config.database)
        await disturbed.stored()
        for number, call in enumerate(disturbed.calls()):
            FAULTS[fault](trouble, number)
            await witness.watch(number, call)
            trouble.over()
            witness.look(number, await observer.stored())
    finally:
        await disturbed.close()
        await observer.close()


def _with(config: MySQLConfig, **options: Any) -> MySQLConfig:
    return MySQLConfig.model_validate({**config.model_dump(exclude_unset=True), **options})


async def _counts(workload: type[Workload], config: MySQLConfig) -> Any:
    """Return what the family counts as stored, without sizes: a row that was written twice is one more."""
    async with Inspector(config) as inspector:
        return [count for count in await inspector.stored(workload.family) if "byte" not in count.noun]


def test_every_family_and_every_fault_is_tried() -> None:
    assert {workload.family for workload in WORKLOADS} == {family.name for family in families()}
    assert len({workload.title for workload in WORKLOADS}) == len(WORKLOADS)
    tried = {(number + index) % ONE_IN for number in range(len(FAULTS)) for index in range(len(WORKLOADS))}
    assert tried == set(range(ONE_IN))


def test_the_document_shows_every_fault_and_every_record_with_every_driver() -> None:
    document = (Path(__file__).resolve().parents[2] / "docs/design/faults.md").read_text(encoding="utf-8")
    for side in EVERY_SIDE:
        for fault in FAULTS:
            assert f"\n| {fault} | {side} |" in document
    for workload in WORKLOADS:
        ways = {side.rpartition("-")[2] for side in EVERY_SIDE if workload.stores.of(side) is not None}
        assert f"\n| {workload.title} | {', '.join(sorted(ways))} |" in document
