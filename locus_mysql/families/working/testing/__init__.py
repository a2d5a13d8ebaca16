"""One suite of checks for every storage, including those of other packages, so that all behave alike.

    from locus_mysql.working.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_my_storage(check, my_storage):
        check.run_blocking(my_storage)

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    async def test_my_storage_awaited(check, my_storage):
        await check.run(my_storage)

A check raises `ContractBroken`, with what was expected, if a storage deviates from `families.working.calls`. Each check
uses sessions of its own tenant, so checks may run concurrently, and on a storage that has other sessions. Imports only
the package and the standard library. Begin with `checks`, then `variables`.
"""

from __future__ import annotations

from . import checkpoints, expiry, limits, stamps, variables, whole_sessions, writers
from .checks import Check, ContractBroken

#: All checks.
CHECKS: tuple[Check, ...] = tuple(
    Check(begin.__name__, begin)
    for module in (variables, whole_sessions, stamps, expiry, limits, checkpoints, writers)
    for begin in module.CHECKS
)

__all__ = ["CHECKS", "Check", "ContractBroken"]
