"""Changing the task state, also while other processes write it."""

from __future__ import annotations

import pytest

from locus_mysql.errors import (
    InvalidInput,
    NotFound,
    Unavailable,
)
from locus_mysql.families.working import operations
from locus_mysql.working import (
    InMemoryStorage,
    SyncWorkingMemory,
    TaskState,
)

from ....either_side import AnyStore as AnyMemory


async def test_a_task_state_is_changed_from_its_value_at_the_time_of_the_write(
    memory: AnyMemory, storage: InMemoryStorage
) -> None:
    others, given = SyncWorkingMemory("session", storage), []

    def change(task: TaskState | None) -> TaskState:
        given.append(task)
        if len(given) < 3:
            others.append_scratchpad("somebody else writes")
            others.set_task_state(TaskState(task_id="t").start().advance(len(given)))
        return (task or TaskState(task_id="t")).advance()

    changed = await memory.update_task_state(change)
    assert [task and task.current_step for task in given] == [None, 1, 2]
    assert changed.current_step == 3
    assert await memory.get_task_state() == changed


async def test_a_change_of_the_task_state_may_keep_or_remove_it(memory: AnyMemory) -> None:
    assert await memory.update_task_state(lambda task: task) is None
    assert await memory.touch() is False  # there is no session
    await memory.set_task_state(TaskState(task_id="t"))
    assert (await memory.update_task_state(lambda task: task)).task_id == "t"
    assert await memory.update_task_state(lambda _: None) is None
    assert await memory.get_task_state() is None


async def test_a_change_of_types_only_is_a_change_of_the_task_state(memory: AnyMemory) -> None:
    begun = TaskState(task_id="t", data={"seats": 1, "paid": 0})
    await memory.set_task_state(begun)
    await memory.update_task_state(lambda task: task.model_copy(update={"data": {"seats": 1.0, "paid": False}}))
    data = (await memory.get_task_state()).data
    assert [type(data[key]) for key in ("seats", "paid")] == [float, bool]


async def test_a_change_of_the_task_state_that_fails_changes_nothing(memory: AnyMemory) -> None:
    before = TaskState(task_id="t", total_steps=1).start()
    await memory.set_task_state(before)
    with pytest.raises(InvalidInput, match="step 2 of 1"):
        await memory.update_task_state(lambda task: task.advance(2))
    with pytest.raises(InvalidInput, match="must return a TaskState or None, not dict"):
        await memory.update_task_state(lambda _: {"status": "running"})
    assert await memory.get_task_state() == before


async def test_a_change_of_a_missing_task_state_is_refused_with_the_remedy(memory: AnyMemory) -> None:
    for change in (lambda task: task.advance(), lambda task: task.model_copy(update={"data": task.data})):
        with pytest.raises(NotFound, match=r"has no task state, .* Call set_task_state first"):
            await memory.update_task_state(change)
    with pytest.raises(AttributeError, match="nonsense"):
        await memory.update_task_state(lambda _: None.nonsense)  # type: ignore[attr-defined]
    assert await memory.get_task_state() is None


async def test_a_change_of_the_task_state_comes_through_when_others_hardly_rest(
    memory: AnyMemory, storage: InMemoryStorage
) -> None:
    others = SyncWorkingMemory("session", storage)
    tries = 0

    def change(task: TaskState | None) -> TaskState:
        nonlocal tries
        tries += 1
        if tries < 100:
            others.increment("n")
        return TaskState(task_id="t")

    await memory.update_task_state(change)
    assert await memory.get_task_state() is not None
    assert tries == 100


async def test_a_change_of_the_task_state_is_given_up_when_others_never_rest(
    memory: AnyMemory, storage: InMemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "TRYING_S", 0.2)
    others = SyncWorkingMemory("session", storage)

    def change(task: TaskState | None) -> TaskState:
        others.increment("n")
        return TaskState(task_id="t")

    with pytest.raises(Unavailable, match=r"for 0\.2 s. Nothing was changed"):
        await memory.update_task_state(change)
    assert await memory.get_task_state() is None
