"""Sessions in the process's own memory."""

import pytest

from locus_mysql.working.storages.in_memory import InMemoryStorage
from locus_mysql.working.storages.interface import Storage
from locus_mysql.working.testing import CHECKS, Check


@pytest.fixture
def storage() -> Storage:
    return InMemoryStorage()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_it_keeps_the_contract(check: Check, storage: Storage) -> None:
    check.run_blocking(storage)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_it_keeps_the_contract_when_awaited(check: Check, storage: Storage) -> None:
    await check.run(storage)
