"""A storage with a fallback keeps the contract of storages, with either of the two serving."""

from __future__ import annotations

import pytest

from locus_mysql.families.working.calls import ReadTask
from locus_mysql.families.working.storages.fallback import FallbackStorage
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from tests.storage_contract import CHECKS, Check

from .....thoroughness import FULL
from .frail import Frail, call

pytestmark = pytest.mark.slow

#: Timeout in seconds that even a busy machine does not exceed.
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
    """A storage in an outage that began earlier, as the outcome of the call that begins one is unknown."""
    storage.execute_blocking(call(ReadTask()))
    assert storage.degraded
    return storage


#: In an outage, a storage can neither determine whether a checkpoint of an unseen session exists, nor guarantee that a
#: tenant is forgotten.
BEYOND = {
    "restoring_a_missing_checkpoint_is_refused",
    "a_refused_call_may_be_repeated_with_the_same_token",
    "forgetting_a_tenant_removes_all_its_sessions",
}

CASES = pytest.mark.parametrize(
    ("make", "check"),
    [
        pytest.param(make, check, id=f"{make.__name__}-{check.name}")
        for make in (up, away, *([nested] if FULL else []))
        for check in CHECKS
        if make is up or check.name not in BEYOND
    ],
)


@CASES
def test_the_storage_keeps_the_contract(check: Check, make: type[FallbackStorage]) -> None:
    check.run_blocking(make())


@CASES
async def test_the_storage_keeps_the_contract_when_awaited(check: Check, make: type[FallbackStorage]) -> None:
    await check.run(make())
