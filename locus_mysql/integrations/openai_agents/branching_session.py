"""The session with branches, turns and usage: `OpenAIBranchingSession`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from agents import TResponseInputItem

from ...runtime.stores import awaited
from .branch_operations import BranchOperations
from .operations import SessionOperations
from .session import OpenAISession

T = TypeVar("T")


class OpenAIBranchingSession(OpenAISession):
    """An `OpenAISession` with branches, turns and usage: what the SDK's `AdvancedSQLiteSession` adds, in MySQL.

    Each object continues a branch of its own choice, first ``main``, whose items an `OpenAISession` of the same id has,
    too. Calls of one object are carried out in the order in which they were made. All arguments are those of
    `OpenAISession`.

    Example:
        ```python
        async with Database("mysql://user:password@localhost/app") as database:
            session = OpenAIBranchingSession("customer-7", database)
            await session.add_items([{"role": "user", "content": "Paris?"}, {"role": "user", "content": "Rome?"}])
            await session.create_branch_from_turn(2, "other-city")
            await session.add_items([{"role": "user", "content": "Oslo?"}])
            assert [item["content"] for item in await session.get_items()] == ["Paris?", "Oslo?"]
            assert len(await session.get_items(branch_id="main")) == 2
        ```
    """

    _operations: BranchOperations
    _make_operations: ClassVar[type[SessionOperations]] = BranchOperations

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        #: By event loop, as a session may be used in several, one after another.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def current_branch(self) -> str:
        """The branch that this object continues; ``main`` once another process has cleared the session."""
        return self._operations.pointer.branch_id

    async def get_items(self, limit: int | None = None, branch_id: str | None = None) -> list[TResponseInputItem]:
        """Return the items of a branch, oldest first. One round trip; two after its branches have changed.

        Args:
            limit: See `OpenAISession.get_items`.
            branch_id: The branch; None: the current one. None of the session's: no items.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await self._run(self._operations.get_items(limit, branch_id))

    @awaited(BranchOperations.clear_session)
    def clear_session(self) -> None: ...
    @awaited(BranchOperations.create_branch_from_turn)
    def create_branch_from_turn(self) -> None: ...
    @awaited(BranchOperations.create_branch_from_content)
    def create_branch_from_content(self) -> None: ...
    @awaited(BranchOperations.switch_to_branch)
    def switch_to_branch(self) -> None: ...
    @awaited(BranchOperations.delete_branch)
    def delete_branch(self) -> None: ...
    @awaited(BranchOperations.list_branches)
    def list_branches(self) -> None: ...
    @awaited(BranchOperations.get_conversation_turns)
    def get_conversation_turns(self) -> None: ...
    @awaited(BranchOperations.find_turns_by_content)
    def find_turns_by_content(self) -> None: ...
    @awaited(BranchOperations.get_conversation_by_turns)
    def get_conversation_by_turns(self) -> None: ...
    @awaited(BranchOperations.get_tool_usage)
    def get_tool_usage(self) -> None: ...
    @awaited(BranchOperations.store_run_usage)
    def store_run_usage(self) -> None: ...
    @awaited(BranchOperations.get_session_usage)
    def get_session_usage(self) -> None: ...
    @awaited(BranchOperations.get_turn_usage)
    def get_turn_usage(self) -> None: ...

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        """Run an operation after those of earlier calls."""
        lock = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            return await super()._run(operation)
