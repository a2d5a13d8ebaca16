"""The session of the OpenAI Agents SDK: `OpenAISession`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, Unpack, cast

from agents import TResponseInputItem
from agents.memory import SessionSettings
from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...engine.loops import settled
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, awaited
from .operations import SessionOperations

T = TypeVar("T")


class OpenAISession(AsyncStore[SessionOperations]):
    """Keeps a conversation of the OpenAI Agents SDK in MySQL: an `agents.memory.Session`.

    A write that is cancelled ends before the cancellation is raised, as with the SDK's own sessions.

    Args:
        session_id: The id of the session: 1 to 800 bytes of UTF-8 without NUL, compared by code point.
        where: A `Database` that is shared with other sessions and stores, a DSN, or a `MySQLConfig`; or give options as
            keywords. Without a `Database`, this session opens its own connections.
        session_settings: Its ``limit`` is the default limit of `get_items`.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to sessions.

    Example:
        ```python
        async with Database("mysql://user:password@localhost/app") as database:
            session = OpenAISession("customer-7", database, tenant="acme")
            await session.add_items([{"role": "user", "content": "Where is the office?"}])
            assert await session.get_items(limit=1) == [{"role": "user", "content": "Where is the office?"}]
        ```
    """

    session_id: str
    session_settings: SessionSettings | None
    _make_operations: ClassVar[type[SessionOperations]] = SessionOperations

    def __init__(
        self,
        session_id: str,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        if isinstance(session_settings, dict):
            if unknown := session_settings.keys() - {field.name for field in fields(SessionSettings)}:
                raise TypeError(f"Unknown session settings: {', '.join(sorted(unknown))}.")
            session_settings = SessionSettings(**session_settings)
        database, config, owned = share(where, options)
        super().__init__(self._make_operations(config, session_id), database, owned=owned)
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else session_settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items of the session, oldest first. One round trip.

        Args:
            limit: The maximum number of items, counted from the last; the server reads no others. None: the limit of
                `session_settings`. A negative number: all, as in the SDK's session in SQLite.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await super()._run(self._operations.get_items(limit))

    @awaited(SessionOperations.add_items)
    def add_items(self) -> None: ...
    @awaited(SessionOperations.pop_item)
    def pop_item(self) -> None: ...
    @awaited(SessionOperations.clear_session)
    def clear_session(self) -> None: ...

    # The SDK's OpenAIResponsesCompactionSession looks for the next two methods, whose names and arguments are those of
    # its own sessions. Without them it skips sessions with a limit, and else clears the session before it adds items.

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[TResponseInputItem], bool] | None = None
    ) -> CompactionSnapshot | None:
        """Return the last items, with a function that replaces some of them in one transaction.

        Args:
            limit: The maximum number of items.
            prune_prefix: Ignored. Expired items of the SDK's `EncryptedSession` stay, and it skips them as before.
        """
        if not self._stores_items_itself:
            return None
        pointer = self._operations.pointer
        read = await self._run(self._operations.read(None, last=limit + 1, pointer=pointer))
        items = [] if read is None else read.items[-limit:]

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            return await self._run(self._operations.replace_suffix(pointer, items[start:], output))

        complete = read is None or len(read.items) == len(items)
        return CompactionSnapshot([cast(TResponseInputItem, item.content) for item in items], complete, replace_suffix)

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Replace all items in one transaction; return False, without doing so, for an application's own subclass."""
        if self._stores_items_itself:
            await self._run(self._operations.replace_all(items))
        return self._stores_items_itself

    @property
    def _stores_items_itself(self) -> bool:
        """Whether this is no application's subclass, whose methods may transform items."""
        return type(self).__module__.startswith(__package__)

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run a write."""
        return await settled(super()._run(operation))


@dataclass(frozen=True, slots=True)
class CompactionSnapshot:
    """The last items of a session. The SDK's class of this kind is private, and its older versions have none.

    Args:
        items: The items, oldest first.
        complete: Whether the session has no others.
        replace_suffix: Replaces the items from an index on, if these are still the session's last ones; returns whether
            they were.
    """

    items: list[TResponseInputItem]
    complete: bool
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]
