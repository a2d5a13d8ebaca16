"""One suite of checks for every storage of working memory, so that all behave alike.

A check raises `ContractBroken`, with what was expected, if a storage deviates from `families.working.calls`. Each check
uses sessions of its own tenant, so checks may run concurrently, and on a storage that has other sessions. Begin with
`checks`, then `variables`.
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
