"""Working memory: `WorkingMemory` and `SyncWorkingMemory`, their options and their storage."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Coroutine
from dataclasses import replace
from typing import Any, Self, TypeVar, Unpack, cast

from pydantic import SecretStr

from ...config import ENVIRONMENT, Keywords, MySQLConfig, refuse_unused
from ...engine.loops import settled
from ...engine.operation import drive_awaited, drive_blocking
from ...errors import ConfigError
from ...records.turns import AsyncTurn, SyncTurn
from ...runtime.arguments import check_tenant, tenant_of
from ...runtime.database import Where
from ...runtime.stores import Awaited, Blocking, Method, awaited_method, blocking_method
from .calls import Limits, OnFull
from .operations import Procedure, SessionOperations
from .records import SessionStats
from .storages.interface import MayDegrade, Storage
from .storages.mysql import MySQLStorage

T = TypeVar("T")

_REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "valkey://", "valkeys://")

DEFAULT_TENANT = "default"

#: The beginning of a DSN. A DSN as a session id would show its password wherever the session is named.
_DSN = re.compile(r"(?:mysql|rediss?|valkeys?)(?:\+\w+)?://", re.IGNORECASE)

#: The default limits.
DEFAULTS = Limits()


def storage_of(where: Where | Storage, options: Keywords) -> tuple[Storage, bool, str]:
    """Return the storage, whether it was opened here and must be closed, and the default tenant.

    Args:
        where: See `WorkingMemory`.
        options: Its other keywords.

    Raises:
        ConfigError: An option is unknown, wrong, or belongs to another storage.
    """
    text = where.get_secret_value() if isinstance(where, SecretStr) else where
    if isinstance(where, Storage) or (isinstance(text, str) and text.startswith(_REDIS_SCHEMES)):
        if others := options.keys() - {"tenant"}:
            raise ConfigError(f"{', '.join(sorted(others))}: these are options of MySQL; give the storage its own.")
        storage = where if isinstance(where, Storage) else _redis(cast(str, text))
        config = getattr(storage, "config", None)
        if "tenant" not in options and isinstance(config, MySQLConfig):
            return storage, storage is not where, tenant_of(config)
        return storage, storage is not where, check_tenant(options.get("tenant", DEFAULT_TENANT))
    refuse_unused(WorkingMemory, options)
    mysql = MySQLStorage(where, **options)
    return mysql, True, tenant_of(mysql.config)


def _redis(url: str) -> Storage:
    from .storages.redis import RedisStorage

    return RedisStorage(url)


class WorkingMemoryBase:
    """Base of `WorkingMemory` and `SyncWorkingMemory`: the code that does not wait.

    Args:
        session_id: The session's id: 1 to 512 characters without NUL, compared by code point.
        where: A DSN (``mysql://…``, ``redis://…``), a `MySQLConfig`, a `Database`, or a storage; or give options of
            `MySQLConfig` as keywords.
        session_ttl_s: The session expires when it was not used for this many seconds: not before, and at most an
            eighth later. None: it stays until `end`. The process that begins the session decides; `touch` changes it.
        end_on_exit: Whether leaving a ``with`` block ends the session, or keeps it for the next process.
        max_keys: The maximum number of variables.
        max_value_bytes: The maximum number of bytes of JSON of a variable, of the task state, or of a note.
        max_session_bytes: The maximum number of bytes of variables with their keys, task state and notes together.
        max_scratchpad_entries: The maximum number of notes.
        max_checkpoints: The maximum number of checkpoints; beyond it, the oldest are deleted.
        on_full: ``refuse`` raises `CapacityExceeded` for a write for which there is no room; ``evict`` removes the
            least recently used variables instead, never task state or notes. A process records which variables it has
            read with its next write.
        options: ``tenant``, the session's tenant (by default the storage's, or ``default``); and, where this opens
            MySQL, the other options of `MySQLConfig`.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another; or the session id is a DSN.
        InvalidInput: The session id or the tenant is not valid.
        DriverMissing: The client library is not installed.
    """

    def __init__(
        self,
        session_id: str,
        where: Where | Storage = ENVIRONMENT,
        *,
        session_ttl_s: float | None = None,
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
        if isinstance(session_id, str) and _DSN.match(session_id):
            raise ConfigError(
                "The first argument is the id of the session, and here it is a DSN. Pass the DSN as the second "
                "argument, or use open(dsn, session_id=...)."
            )
        limits = Limits(max_keys, max_value_bytes, max_session_bytes, max_scratchpad_entries, max_checkpoints, on_full)
        self.storage, self._owned, tenant = storage_of(where, options)
        self._operations = SessionOperations(session_id, tenant, session_ttl_s, limits)
        self.end_on_exit = end_on_exit

    @classmethod
    def open(
        cls,
        where: Where | Storage = ENVIRONMENT,
        *,
        session_id: str,
        **options: Any,
    ) -> Self:
        """The same with the storage first: ``WorkingMemory.open("mysql://…", session_id="s-1")``."""
        return cls(session_id, where, **options)

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._operations.address.session_id

    @property
    def tenant(self) -> str:
        """The session's tenant."""
        return self._operations.address.tenant

    @property
    def _mysql(self) -> MySQLStorage:
        """The storage in MySQL.

        Raises:
            ConfigError: It is another one.
        """
        if not isinstance(self.storage, MySQLStorage):
            raise ConfigError(f"A turn needs a session in MySQL, not in {type(self.storage).__name__}.")
        return self.storage

    set = Method(SessionOperations.set)
    set_many = Method(SessionOperations.set_many)
    get = Method(SessionOperations.get)
    get_many = Method(SessionOperations.get_many)
    get_all = Method(SessionOperations.get_all)
    exists = Method(SessionOperations.exists)
    list_keys = Method(SessionOperations.list_keys)
    delete = Method(SessionOperations.delete)
    delete_many = Method(SessionOperations.delete_many)
    clear = Method(SessionOperations.clear)
    increment = Method(SessionOperations.increment)
    compare_and_set = Method(SessionOperations.compare_and_set)
    ttl = Method(SessionOperations.ttl)
    set_task_state = Method(SessionOperations.set_task_state)
    get_task_state = Method(SessionOperations.get_task_state)
    update_task_state = Method(SessionOperations.update_task_state)
    append_scratchpad = Method(SessionOperations.append_scratchpad)
    get_scratchpad = Method(SessionOperations.get_scratchpad)
    clear_scratchpad = Method(SessionOperations.clear_scratchpad)
    create_checkpoint = Method(SessionOperations.create_checkpoint)
    restore_checkpoint = Method(SessionOperations.restore_checkpoint)
    list_checkpoints = Method(SessionOperations.list_checkpoints)
    delete_checkpoint = Method(SessionOperations.delete_checkpoint)
    touch = Method(SessionOperations.touch)
    end = Method(SessionOperations.end)

    def _with_condition(self, stats: SessionStats) -> SessionStats:
        if not isinstance(self.storage, MayDegrade):
            return stats
        degraded, pending, lost = self.storage.condition(self._operations.address)
        return replace(stats, degraded=degraded, pending=pending, lost=lost)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r}, {self.storage!r}, tenant={self.tenant!r})"


class WorkingMemory(WorkingMemoryBase, Awaited):
    """The working memory of one session of an agent: variables, the task state, and notes. Any process may continue it.

    Example:
        ```python
        async with WorkingMemory("session-1", "mysql://user:password@localhost/app") as memory:
            await memory.set("city", "Bonn", ttl_s=3600)
            await memory.append_scratchpad("The user wants a window seat.")
            await memory.set_task_state(TaskState(task_id="book", total_steps=3).start())
            before = await memory.create_checkpoint("before booking")
        ```
    """

    def _run(self, procedure: Procedure[T]) -> Coroutine[Any, Any, T]:
        return drive_awaited(procedure, self.storage.execute)

    def turn(self, wait_s: float = 30.0, lease_s: float = 20.0, *, take_over: bool = False) -> AsyncTurn:
        """Allow one turn at a time on the session, across all processes: ``async with memory.turn():``.

        Only for sessions in MySQL. Everything else is as with `CheckpointStore.turn`.
        """
        address, storage = self._operations.address, self._mysql
        return AsyncTurn(storage._awaited, address, self.session_id, wait_s, lease_s, take_over=take_over)

    get_as = awaited_method(SessionOperations.get_as)

    async def stats(self) -> SessionStats:
        """The session's content in numbers, and whether its storage serves it."""
        return self._with_condition(await self._run(self._operations.measure()))

    async def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones. The session stays."""
        if self._owned:
            await self.storage.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await settled(self._leave())

    async def _leave(self) -> None:
        try:
            if self.end_on_exit:
                await self.end()
        finally:
            await self.close()

    def __enter__(self) -> Self:
        raise ConfigError("WorkingMemory is asynchronous: write `async with`, or use SyncWorkingMemory.")

    def __exit__(self, *error: object) -> None: ...


class SyncWorkingMemory(WorkingMemoryBase, Blocking):
    """`WorkingMemory` with methods that block. Safe to share between threads."""

    def _run(self, procedure: Procedure[T]) -> T:
        return drive_blocking(procedure, self.storage.execute_blocking)

    def turn(self, wait_s: float = 30.0, lease_s: float = 20.0, *, take_over: bool = False) -> SyncTurn:
        """Allow one turn at a time on the session; see `WorkingMemory.turn`."""
        address, storage = self._operations.address, self._mysql
        return SyncTurn(storage._blocking, address, self.session_id, wait_s, lease_s, take_over=take_over)

    get_as = blocking_method(SessionOperations.get_as)

    def stats(self) -> SessionStats:
        """The session's content in numbers, and whether its storage serves it."""
        return self._with_condition(self._run(self._operations.measure()))

    def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones. The session stays."""
        if self._owned:
            self.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if self.end_on_exit:
                self.end()
        finally:
            self.close()


#: The options of a session, by name.
OWN_OPTIONS = tuple(
    name
    for name, one in inspect.signature(WorkingMemoryBase.__init__).parameters.items()
    if one.kind is one.KEYWORD_ONLY
)


def _check_known(options: Collection[str]) -> None:
    """Raise if an option is unknown; the message lists the known ones."""
    known = Keywords.__optional_keys__
    if unknown := sorted(set(options) - known):
        raise ConfigError(
            f"{', '.join(unknown)}: there is no such option. Known of a session: {', '.join(OWN_OPTIONS)}; of MySQL, "
            f"where this opens it: {', '.join(sorted(known))}."
        )
