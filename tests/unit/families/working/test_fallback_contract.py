"""A storage with a fallback keeps the contract of storages, whichever of both serves."""

from __future__ import annotations

import pytest

from locus_mysql.families.working.calls import ReadTask
from locus_mysql.families.working.storages.fallback import FallbackStorage
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.families.working.testing import CHECKS, Check

from ....thoroughness import FULL
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


#: A storage that is away cannot tell that a checkpoint is not there, of a session that it has never seen; nor can it
#: promise that a tenant is forgotten.
BEYOND = {
    "restoring_what_is_not_there_is_refused",
    "what_was_refused_may_be_asked_again",
    "a_tenant_is_forgotten_whole",
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
def test_it_keeps_the_contract(check: Check, make: type[FallbackStorage]) -> None:
    check.run_blocking(make())


@CASES
async def test_it_keeps_the_contract_when_awaited(check: Check, make: type[FallbackStorage]) -> None:
    await check.run(make())
