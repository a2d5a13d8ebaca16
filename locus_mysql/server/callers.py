"""Who sends a request: `Caller`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request, as far as its token tells.

    Args:
        name: What the token's entry calls it; for the log, never shown to other callers.
        tenant: Whose threads, memories and sessions it sees; no others.
        may_write: Whether it may change any of them.
    """

    name: str
    tenant: str
    may_write: bool
