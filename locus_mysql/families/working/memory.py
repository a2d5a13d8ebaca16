"""Working memory: `WorkingMemory` and `SyncWorkingMemory`."""

from __future__ import annotations

from typing import Self, TypeVar

from ...errors import ConfigError
from ...runtime.generators import drive_awaited, drive_blocking
from .procedures import Procedure, SessionProcedures
from .records import SessionStats
from .surface import Session, awaited, blocking

T = TypeVar("T")


class WorkingMemory(Session):
    """What one session of an agent has in hand: variables, the state of its task, notes; any process may go on with it.

    Example:
        ```python
        async with WorkingMemory("session-1", "mysql://user:password@localhost/app") as memory:
            await memory.set("city", "Bonn", ttl_seconds=3600)
            await memory.append_scratchpad("The user wants a window seat.")
            await memory.set_task_state(TaskState(task_id="book", total_steps=3).start())
            before = await memory.create_checkpoint("before booking")
        ```
    """

    async def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure."""
        return await drive_awaited(procedure, self.storage.execute)

    @awaited(SessionProcedures.set)
    def set(self) -> None: ...

    @awaited(SessionProcedures.set_many)
    def set_many(self) -> None: ...

    @awaited(SessionProcedures.get)
    def get(self) -> None: ...

    @awaited(SessionProcedures.get_as)
    def get_as(self) -> None: ...

    @awaited(SessionProcedures.get_many)
    def get_many(self) -> None: ...

    @awaited(SessionProcedures.get_all)
    def get_all(self) -> None: ...

    @awaited(SessionProcedures.exists)
    def exists(self) -> None: ...

    @awaited(SessionProcedures.list_keys)
    def list_keys(self) -> None: ...

    @awaited(SessionProcedures.delete)
    def delete(self) -> None: ...

    @awaited(SessionProcedures.delete_many)
    def delete_many(self) -> None: ...

    @awaited(SessionProcedures.clear)
    def clear(self) -> None: ...

    @awaited(SessionProcedures.increment)
    def increment(self) -> None: ...

    @awaited(SessionProcedures.compare_and_set)
    def compare_and_set(self) -> None: ...

    @awaited(SessionProcedures.ttl)
    def ttl(self) -> None: ...

    @awaited(SessionProcedures.set_task_state)
    def set_task_state(self) -> None: ...

    @awaited(SessionProcedures.get_task_state)
    def get_task_state(self) -> None: ...

    @awaited(SessionProcedures.update_task_state)
    def update_task_state(self) -> None: ...

    @awaited(SessionProcedures.append_scratchpad)
    def append_scratchpad(self) -> None: ...

    @awaited(SessionProcedures.get_scratchpad)
    def get_scratchpad(self) -> None: ...

    @awaited(SessionProcedures.clear_scratchpad)
    def clear_scratchpad(self) -> None: ...

    @awaited(SessionProcedures.create_checkpoint)
    def create_checkpoint(self) -> None: ...

    @awaited(SessionProcedures.restore_checkpoint)
    def restore_checkpoint(self) -> None: ...

    @awaited(SessionProcedures.list_checkpoints)
    def list_checkpoints(self) -> None: ...

    @awaited(SessionProcedures.delete_checkpoint)
    def delete_checkpoint(self) -> None: ...

    @awaited(SessionProcedures.touch)
    def touch(self) -> None: ...

    @awaited(SessionProcedures.end)
    def end(self) -> None: ...

    async def stats(self) -> SessionStats:
        """What the session holds, and whether its storage serves it."""
        return self._with_condition(await self.run(self.procedures.measure()))

    async def close(self) -> None:
        """Close the connections if this opened them; the next call opens new ones. The session stays."""
        if self._owned:
            await self.storage.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            if self.end_on_exit:
                await self.end()
        finally:
            await self.close()

    def __enter__(self) -> Self:
        raise ConfigError("WorkingMemory is asynchronous: write `async with`, or use SyncWorkingMemory.")

    def __exit__(self, *error: object) -> None: ...


class SyncWorkingMemory(Session):
    """`WorkingMemory` with methods that block. Safe to share between threads."""

    def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure."""
        return drive_blocking(procedure, self.storage.execute_blocking)

    @blocking(SessionProcedures.set)
    def set(self) -> None: ...

    @blocking(SessionProcedures.set_many)
    def set_many(self) -> None: ...

    @blocking(SessionProcedures.get)
    def get(self) -> None: ...

    @blocking(SessionProcedures.get_as)
    def get_as(self) -> None: ...

    @blocking(SessionProcedures.get_many)
    def get_many(self) -> None: ...

    @blocking(SessionProcedures.get_all)
    def get_all(self) -> None: ...

    @blocking(SessionProcedures.exists)
    def exists(self) -> None: ...

    @blocking(SessionProcedures.list_keys)
    def list_keys(self) -> None: ...

    @blocking(SessionProcedures.delete)
    def delete(self) -> None: ...

    @blocking(SessionProcedures.delete_many)
    def delete_many(self) -> None: ...

    @blocking(SessionProcedures.clear)
    def clear(self) -> None: ...

    @blocking(SessionProcedures.increment)
    def increment(self) -> None: ...

    @blocking(SessionProcedures.compare_and_set)
    def compare_and_set(self) -> None: ...

    @blocking(SessionProcedures.ttl)
    def ttl(self) -> None: ...

    @blocking(SessionProcedures.set_task_state)
    def set_task_state(self) -> None: ...

    @blocking(SessionProcedures.get_task_state)
    def get_task_state(self) -> None: ...

    @blocking(SessionProcedures.update_task_state)
    def update_task_state(self) -> None: ...

    @blocking(SessionProcedures.append_scratchpad)
    def append_scratchpad(self) -> None: ...

    @blocking(SessionProcedures.get_scratchpad)
    def get_scratchpad(self) -> None: ...

    @blocking(SessionProcedures.clear_scratchpad)
    def clear_scratchpad(self) -> None: ...

    @blocking(SessionProcedures.create_checkpoint)
    def create_checkpoint(self) -> None: ...

    @blocking(SessionProcedures.restore_checkpoint)
    def restore_checkpoint(self) -> None: ...

    @blocking(SessionProcedures.list_checkpoints)
    def list_checkpoints(self) -> None: ...

    @blocking(SessionProcedures.delete_checkpoint)
    def delete_checkpoint(self) -> None: ...

    @blocking(SessionProcedures.touch)
    def touch(self) -> None: ...

    @blocking(SessionProcedures.end)
    def end(self) -> None: ...

    def stats(self) -> SessionStats:
        """What the session holds, and whether its storage serves it."""
        return self._with_condition(self.run(self.procedures.measure()))

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
