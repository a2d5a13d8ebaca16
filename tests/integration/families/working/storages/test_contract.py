"""Every storage passes the contract checks of `tests.storage_contract` on real servers."""

from __future__ import annotations

import pytest

from locus_mysql.families.working.storages.interface import Storage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from tests.storage_contract import CHECKS, Check, random_calls

from .....thoroughness import FULL
from ....conftest import MakeConfig, parts

pytestmark = pytest.mark.slow

#: Random calls after the first for each set of limits: for full runs, as `test_state_machine` makes random calls too.
REPEATED = random_calls.CHECKS[len(random_calls.LIMITS) :]
every_check = pytest.mark.parametrize(
    "check", [check for check in CHECKS if FULL or check not in REPEATED], ids=lambda check: check.name
)

#: The storages, and which of their sides every run checks; the others are checked in full runs.
BLOCKING = ("redis", "valkey", "cluster") if FULL else ("valkey",)
AWAITED = ("redis", "valkey", "cluster") if FULL else ("redis",)


async def run(check: Check, storage: Storage, *, awaited: bool) -> None:
    try:
        await check.run(storage) if awaited else check.run_blocking(storage)
    finally:
        await storage.aclose()


@pytest.mark.parametrize("storage", BLOCKING, indirect=True)
@every_check
def test_the_blocking_side_keeps_the_contract(check: Check, storage: Storage) -> None:
    check.run_blocking(storage)


@pytest.mark.parametrize("storage", AWAITED, indirect=True)
@every_check
async def test_the_asynchronous_side_keeps_the_contract(check: Check, storage: Storage) -> None:
    await run(check, storage, awaited=True)


@pytest.mark.kept_tables("working")
@every_check
async def test_mysql_keeps_the_contract(check: Check, make_config: MakeConfig, side: str) -> None:
    driver, awaited = parts(side)
    await run(check, MySQLStorage(make_config(driver=driver)), awaited=awaited)
