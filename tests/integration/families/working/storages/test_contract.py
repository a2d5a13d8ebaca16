"""Every storage passes the contract checks of `tests.storage_contract` on real servers."""

from __future__ import annotations

import pytest

from locus_mysql.families.working.storages.interface import Storage
from tests.storage_contract import CHECKS, Check

from .....thoroughness import FULL

pytestmark = pytest.mark.slow

#: The storages, and which of their sides every run checks; the others are checked in full runs.
BLOCKING = ("redis", "valkey", "cluster") if FULL else ("valkey",)
AWAITED = ("redis", "valkey", "cluster") if FULL else ("redis",)


@pytest.mark.parametrize("storage", BLOCKING, indirect=True)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_blocking_side_keeps_the_contract(check: Check, storage: Storage) -> None:
    check.run_blocking(storage)


@pytest.mark.parametrize("storage", AWAITED, indirect=True)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_the_asynchronous_side_keeps_the_contract(check: Check, storage: Storage) -> None:
    try:
        await check.run(storage)
    finally:
        await storage.aclose()
