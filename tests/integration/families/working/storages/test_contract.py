"""Every storage passes the contract checks of `tests.storage_contract` on real servers."""

from __future__ import annotations

import pytest

from locus_mysql.families.working.storages.fallback import FallbackStorage
from locus_mysql.families.working.storages.interface import Storage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from tests.storage_contract import CHECKS, Check

from .....thoroughness import FULL
from ....conftest import MakeConfig
from ...checkpoints.conftest import side_name

pytestmark = pytest.mark.slow

every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)

#: The storages, and which of their sides every run checks; the others are checked in full runs.
BLOCKING = ("redis", "valkey", "cluster") if FULL else ("valkey",)
AWAITED = ("redis", "valkey", "cluster") if FULL else ("redis",)

#: A short run only includes the checks that a fallback relies on.
OF_FALLBACK = [check for check in CHECKS if FULL or check.begin.__module__.endswith((".stamps", ".writers"))]


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
async def test_mysql_keeps_the_contract(check: Check, make_config: MakeConfig, side: tuple[str, bool]) -> None:
    await run(check, MySQLStorage(make_config(driver=side[0])), awaited=side[1])


@pytest.mark.kept_tables("working")
@pytest.mark.parametrize("side", [("aiomysql", False), ("aiomysql", True)], ids=side_name)
@pytest.mark.parametrize("check", OF_FALLBACK, ids=lambda check: check.name)
async def test_a_storage_with_a_fallback_keeps_the_contract_while_mysql_is_available(
    check: Check, make_config: MakeConfig, side: tuple[str, bool]
) -> None:
    storage = FallbackStorage(MySQLStorage(make_config(driver=side[0])), timeout_s=60.0)
    await run(check, storage, awaited=side[1])
    assert not storage.degraded
