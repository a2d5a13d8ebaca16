"""One suite of checks for every storage of working memory, so that all behave alike.

A check raises `ContractBroken`, with what was expected, if a storage deviates from `families.working.calls`. Each check
uses sessions of its own tenant, so checks may run concurrently, and on a storage that has other sessions. Begin with
`checks`, then `random_calls`.
"""

from __future__ import annotations

from . import expiry, random_calls, stamps, whole_sessions, writers
from .checks import Check, ContractBroken

#: All checks.
CHECKS: tuple[Check, ...] = (
    *random_calls.CHECKS,
    *(Check(begin.__name__, begin) for module in (whole_sessions, stamps, expiry, writers) for begin in module.CHECKS),
)

__all__ = ["CHECKS", "Check", "ContractBroken"]
