"""What both classes of working memory share: they run procedures on a storage."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack

from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...errors import ConfigError
from ...runtime.database import Database
from ...runtime.methods import Named, dressed, in_place_of_the_definition
from .calls import Limits, OnFull
from .procedures import Procedure, SessionProcedures
from .records import SessionStats
from .storages.interface import MayDegrade, Storage
from .storages.opening import storage_of

#: The limits of sessions that are given none.
DEFAULTS = Limits()

P = ParamSpec("P")
T = TypeVar("T")


class Awaits(Protocol):
    """What an awaited method needs of its object."""

    procedures: SessionProcedures

    async def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure."""


class Blocks(Protocol):
    """What a blocking method needs of its object."""

    procedures: SessionProcedures

    def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure."""


def awaited(
    procedure: Callable[Concatenate[SessionProcedures, P], Procedure[T]],
) -> Callable[[Named], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Make of a definition the coroutine method that runs a procedure."""

    async def method(self: Awaits, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(procedure(self.procedures, *args, **kwargs))

    return in_place_of_the_definition(dressed(method, procedure))


def blocking(
    procedure: Callable[Concatenate[SessionProcedures, P], Procedure[T]],
) -> Callable[[Named], Callable[Concatenate[Any, P], T]]:
    """Make of a definition the method that runs a procedure and waits for it."""

    def method(self: Blocks, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(procedure(self.procedures, *args, **kwargs))

    return in_place_of_the_definition(dressed(method, procedure))


class Session:
    """What both classes share.

    Args:
        session_id: Which session; 1 to 512 characters without NUL, compared by code point.
        where: A DSN (``mysql://…``, ``redis://…``), a `MySQLConfig`, a `Database`, or a storage; or give options of
            `MySQLConfig` as keywords.
        session_ttl_seconds: The session expires when it was not used for so many seconds: not before, and at most an
            eighth later. None: it stays until `end`. Whoever begins the session decides; `touch` changes it.
        end_on_exit: Whether leaving a ``with`` block ends the session, or leaves it for the next process.
        max_keys: Most variables.
        max_value_bytes: Most bytes of JSON of a variable, the task state, or a note.
        max_session_bytes: Most bytes of variables, with their keys, task state and notes together.
        max_scratchpad_entries: Most notes.
        max_checkpoints: Of more checkpoints the oldest go.
        on_full: ``refuse`` raises `CapacityExceeded` for a write that has no place; ``evict`` removes the variables
            used least recently instead, never task state or scratchpad. A process tells of what it has read with its
            next write.
        options: ``tenant``, whose session it is (by default the storage's, or ``default``); and, where this opens
            MySQL, the other options of `MySQLConfig`.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another.
        InvalidInput: The session's id, or the tenant, cannot be one.
        DriverMissing: The client library is not installed.
    """

    def __init__(
        self,
        session_id: str,
        where: str | SecretStr | MySQLConfig | Database | Storage | None = None,
        *,
        session_ttl_seconds: float | None = None,
        end_on_exit: bool = False,
        max_keys: int = DEFAULTS.keys,
        max_value_bytes: int = DEFAULTS.value_bytes,
        max_session_bytes: int = DEFAULTS.session_bytes,
        max_scratchpad_entries: int = DEFAULTS.scratchpad_entries,
        max_checkpoints: int = DEFAULTS.checkpoints,
        on_full: OnFull = "refuse",
        **options: Unpack[Keywords],
    ) -> None:
        _check_known(options)
        limits = Limits(max_keys, max_value_bytes, max_session_bytes, max_scratchpad_entries, max_checkpoints, on_full)
        self.storage, self._owned, tenant = storage_of(where, options)
        self.procedures = SessionProcedures(session_id, tenant, session_ttl_seconds, limits)
        self.end_on_exit = end_on_exit

    @classmethod
    def open(
        cls,
        where: str | SecretStr | MySQLConfig | Database | Storage | None = None,
        *,
        session_id: str,
        **options: Any,
    ) -> Self:
        """The same with the storage first: ``WorkingMemory.open("mysql://…", session_id="s-1")``."""
        return cls(session_id, where, **options)

    @property
    def session_id(self) -> str:
        """Which session."""
        return self.procedures.address.session_id

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.procedures.address.tenant

    def _with_condition(self, stats: SessionStats) -> SessionStats:
        if not isinstance(self.storage, MayDegrade):
            return stats
        degraded, pending, lost = self.storage.condition(self.procedures.address)
        return replace(stats, degraded=degraded, pending=pending, lost=lost)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r}, {self.storage!r}, tenant={self.tenant!r})"


#: The options of a session, by name.
OWN_OPTIONS = tuple(
    name for name, one in inspect.signature(Session.__init__).parameters.items() if one.kind is one.KEYWORD_ONLY
)


def _check_known(options: Collection[str]) -> None:
    """Raise if one of these is an option of nothing; the message names those that there are."""
    known = Keywords.__optional_keys__
    if unknown := sorted(set(options) - known):
        raise ConfigError(
            f"{', '.join(unknown)}: there is no such option. Known of a session: {', '.join(OWN_OPTIONS)}; of MySQL, "
            f"where this opens it: {', '.join(sorted(known))}."
        )
