"""What serving a session yields: what is to be asked of which storage, and for which turn to wait."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

from .....errors import ReadOnlyServer, Unavailable
from ...calls import Address, Call
from .turns import Turn

T = TypeVar("T")

#: What a storage raises that does not answer.
AWAY: Final = (Unavailable, TimeoutError, ConnectionError, ReadOnlyServer)


@dataclass(frozen=True, slots=True)
class Ask:
    """Make a call; answered with its reply, or the storage's error is raised.

    Args:
        which: Of which storage.
        call: The call.
        timeout_s: Give up after so many seconds: `TimeoutError`.
    """

    which: Literal["primary", "fallback"]
    call: Call
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the turn is taken."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove all sessions of a tenant; answered with how many.

    Args:
        which: From which storage.
        tenant: Whose.
    """

    which: Literal["primary", "fallback"]
    tenant: str


Step: TypeAlias = Ask | Wait | Forget
Steps: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `FallbackStorage`, as named there."""

    timeout_s: float
    max_pending: int
    max_pending_bytes: int
    serves: bool
    on_lost: Callable[[Address, tuple[str, ...]], None] | None
