"""The steps that the generators of this package yield: calls to a storage, and waiting for a session's lock."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

from .....errors import ReadOnlyServer, Unavailable
from ... import calls
from .fair_lock import FairLock

T = TypeVar("T")

#: Errors of a storage that is not available.
OUTAGES: Final = (Unavailable, TimeoutError, ConnectionError, ReadOnlyServer)


@dataclass(frozen=True, slots=True)
class Execute:
    """Send a call to a storage. The generator is sent the reply, or the storage's error is raised in it.

    Args:
        storage: The storage.
        call: The call.
        timeout_s: `TimeoutError` is raised after this many seconds without an answer.
    """

    storage: Literal["primary", "fallback"]
    call: calls.Call
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Acquire:
    """Wait until the lock is held."""

    lock: FairLock


@dataclass(frozen=True, slots=True)
class ForgetTenant:
    """Remove all sessions of a tenant from a storage. The generator is sent the number of removed sessions."""

    storage: Literal["primary", "fallback"]
    tenant: str


Step: TypeAlias = Execute | Acquire | ForgetTenant
StepGenerator: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `FallbackStorage`, as named there, and whether it has a fallback."""

    timeout_s: float
    max_pending: int
    max_pending_bytes: int
    has_fallback: bool
    on_lost: Callable[[calls.Address, tuple[str, ...]], None] | None
