"""A storage with a fallback keeps the contract of storages, whichever of both serves."""

from __future__ import annotations

import pytest

from locus_mysql.working.calls import ReadTask
from locus_mysql.working.storages.fallback import FallbackStorage
from locus_mysql.working.storages.in_memory import InMemoryStorage
from locus_mysql.working.testing import CHECKS, Check

from ...thoroughness import FULL
from .frail import Frail, call

pytestmark = pytest.mark.slow

#: Long enough that no busy machine begins an outage.
PATIENT_S = 60.0


def up() -> FallbackStorage:
    return FallbackStorage(InMemoryStorage(), timeout_s=PATIENT_S)


def away() -> FallbackStorage:
    primary = Frail()
    primary.away = True
    return begun(FallbackStorage(primary, timeout_s=PATIENT_S, max_pending=100_000))


def nested() -> FallbackStorage:
    primary, second = Frail(), Frail()
    primary.away = second.away = True
    last = begun(FallbackStorage(second, max_pending=100_000))
    return begun(FallbackStorage(primary, last, timeout_s=PATIENT_S, max_pending=100_000))


def begun(storage: FallbackStorage) -> FallbackStorage:
    """One whose outage began before: of the call that begins it, it is not known whether it was carried out."""
    storage.execute_blocking(call(ReadTask()))
    assert storage.degraded
    return storage


STORAGES = pytest.mark.parametrize("make", [up, away, *([nested] if FULL else [])], ids=lambda make: make.__name__)


@STORAGES
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_it_keeps_the_contract(check: Check, make: type[FallbackStorage]) -> None:
    check.run_blocking(make())


@STORAGES
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_it_keeps_the_contract_when_awaited(check: Check, make: type[FallbackStorage]) -> None:
    await check.run(make())
