"""Working memory: `WorkingMemory` and `SyncWorkingMemory`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from ...engine.loops import settled
from ...errors import ConfigError
from ...runtime.generators import drive_awaited, drive_blocking
from ...runtime.stores import awaited, blocking
from .base import WorkingMemoryBase
from .operations import Procedure, SessionOperations
from .records import SessionStats

T = TypeVar("T")


class WorkingMemory(WorkingMemoryBase):
    """The working memory of one session of an agent: variables, the task state, and notes. Any process may continue it.

    Example:
        ```python
        async with WorkingMemory("session-1", "mysql://user:password@localhost/app") as memory:
            await memory.set("city", "Bonn", ttl_seconds=3600)
            await memory.append_scratchpad("The user wants a window seat.")
            await memory.set_task_state(TaskState(task_id="book", total_steps=3).start())
            before = await memory.create_checkpoint("before booking")
        ```
    """

    def _run(self, procedure: Procedure[T]) -> Coroutine[Any, Any, T]:
        return drive_awaited(procedure, self.storage.execute)

    @awaited(SessionOperations.set)
    def set(self) -> None: ...

    @awaited(SessionOperations.set_many)
    def set_many(self) -> None: ...

    @awaited(SessionOperations.get)
    def get(self) -> None: ...

    @awaited(SessionOperations.get_as)
    def get_as(self) -> None: ...

    @awaited(SessionOperations.get_many)
    def get_many(self) -> None: ...

    @awaited(SessionOperations.get_all)
    def get_all(self) -> None: ...

    @awaited(SessionOperations.exists)
    def exists(self) -> None: ...

    @awaited(SessionOperations.list_keys)
    def list_keys(self) -> None: ...

    @awaited(SessionOperations.delete)
    def delete(self) -> None: ...

    @awaited(SessionOperations.delete_many)
    def delete_many(self) -> None: ...

    @awaited(SessionOperations.clear)
    def clear(self) -> None: ...

    @awaited(SessionOperations.increment)
    def increment(self) -> None: ...

    @awaited(SessionOperations.compare_and_set)
    def compare_and_set(self) -> None: ...

    @awaited(SessionOperations.ttl)
    def ttl(self) -> None: ...

    @awaited(SessionOperations.set_task_state)
    def set_task_state(self) -> None: ...

    @awaited(SessionOperations.get_task_state)
    def get_task_state(self) -> None: ...

    @awaited(SessionOperations.update_task_state)
    def update_task_state(self) -> None: ...

    @awaited(SessionOperations.append_scratchpad)
    def append_scratchpad(self) -> None: ...

    @awaited(SessionOperations.get_scratchpad)
    def get_scratchpad(self) -> None: ...

    @awaited(SessionOperations.clear_scratchpad)
    def clear_scratchpad(self) -> None: ...

    @awaited(SessionOperations.create_checkpoint)
    def create_checkpoint(self) -> None: ...

    @awaited(SessionOperations.restore_checkpoint)
    def restore_checkpoint(self) -> None: ...

    @awaited(SessionOperations.list_checkpoints)
    def list_checkpoints(self) -> None: ...

    @awaited(SessionOperations.delete_checkpoint)
    def delete_checkpoint(self) -> None: ...

    @awaited(SessionOperations.touch)
    def touch(self) -> None: ...

    @awaited(SessionOperations.end)
    def end(self) -> None: ...

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


class SyncWorkingMemory(WorkingMemoryBase):
    """`WorkingMemory` with methods that block. Safe to share between threads."""

    def _run(self, procedure: Procedure[T]) -> T:
        return drive_blocking(procedure, self.storage.execute_blocking)

    @blocking(SessionOperations.set)
    def set(self) -> None: ...

    @blocking(SessionOperations.set_many)
    def set_many(self) -> None: ...

    @blocking(SessionOperations.get)
    def get(self) -> None: ...

    @blocking(SessionOperations.get_as)
    def get_as(self) -> None: ...

    @blocking(SessionOperations.get_many)
    def get_many(self) -> None: ...

    @blocking(SessionOperations.get_all)
    def get_all(self) -> None: ...

    @blocking(SessionOperations.exists)
    def exists(self) -> None: ...

    @blocking(SessionOperations.list_keys)
    def list_keys(self) -> None: ...

    @blocking(SessionOperations.delete)
    def delete(self) -> None: ...

    @blocking(SessionOperations.delete_many)
    def delete_many(self) -> None: ...

    @blocking(SessionOperations.clear)
    def clear(self) -> None: ...

    @blocking(SessionOperations.increment)
    def increment(self) -> None: ...

    @blocking(SessionOperations.compare_and_set)
    def compare_and_set(self) -> None: ...

    @blocking(SessionOperations.ttl)
    def ttl(self) -> None: ...

    @blocking(SessionOperations.set_task_state)
    def set_task_state(self) -> None: ...

    @blocking(SessionOperations.get_task_state)
    def get_task_state(self) -> None: ...

    @blocking(SessionOperations.update_task_state)
    def update_task_state(self) -> None: ...

    @blocking(SessionOperations.append_scratchpad)
    def append_scratchpad(self) -> None: ...

    @blocking(SessionOperations.get_scratchpad)
    def get_scratchpad(self) -> None: ...

    @blocking(SessionOperations.clear_scratchpad)
    def clear_scratchpad(self) -> None: ...

    @blocking(SessionOperations.create_checkpoint)
    def create_checkpoint(self) -> None: ...

    @blocking(SessionOperations.restore_checkpoint)
    def restore_checkpoint(self) -> None: ...

    @blocking(SessionOperations.list_checkpoints)
    def list_checkpoints(self) -> None: ...

    @blocking(SessionOperations.delete_checkpoint)
    def delete_checkpoint(self) -> None: ...

    @blocking(SessionOperations.touch)
    def touch(self) -> None: ...

    @blocking(SessionOperations.end)
    def end(self) -> None: ...

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
