"""`Caller`: the sender of a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, as its token identifies it.

    Args:
        name: The name in the token's entry; for the log, never shown to other callers.
        tenant: The only tenant whose threads, memories and sessions it sees.
        may_write: Whether it may change them.
    """

    name: str
    tenant: str
    may_write: bool
