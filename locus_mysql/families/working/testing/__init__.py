"""One suite of checks for every storage, those of others too, so that they cannot drift apart.

    from locus_mysql.working.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_my_storage(check, my_storage):
        check.run_blocking(my_storage)

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    async def test_my_storage_awaited(check, my_storage):
        await check.run(my_storage)

A check raises `ContractBroken`, which says what was expected, where a storage does otherwise than
`families.working.calls` says. Each uses sessions of a tenant of its own, so checks may run beside each other, and on
a storage that has others' sessions. Needs nothing but the package.
"""

from __future__ import annotations

from . import checkpoints, expiry, limits, stamps, variables, writers
from .checks import Check, ContractBroken

#: All checks.
CHECKS: tuple[Check, ...] = tuple(
    Check(begin.__name__, begin)
    for module in (variables, stamps, expiry, limits, checkpoints, writers)
    for begin in module.CHECKS
)

__all__ = ["CHECKS", "Check", "ContractBroken"]
