"""Changes of the task state during and after an outage of the primary."""

from __future__ import annotations

import pytest

from locus_mysql.working import (
    FallbackStorage,
    InMemoryStorage,
    SyncWorkingMemory,
    TaskState,
)

from .frail import Frail


@pytest.mark.parametrize("known", [True, False], ids=["seen before the outage", "begun in it"])
def test_a_task_state_changed_in_an_outage_persists_after_it(known: bool) -> None:
    frail = Frail()
    storage = FallbackStorage(frail, "memory")
    memory = SyncWorkingMemory("s", storage)
    if known:
        memory.set_task_state(TaskState(task_id="t").start().advance())
        memory.append_scratchpad("a note")
    frail.away = True

    def change(task: TaskState | None) -> TaskState:
        return (task or TaskState(task_id="t").start().advance()).advance()

    for steps in (2, 3):
        changed = memory.update_task_state(change)
        assert changed is not None
        assert changed.current_step == steps
        memory.append_scratchpad("a note")
    assert memory.stats().degraded
    frail.away = False
    assert storage.flush_blocking() == 0
    after = SyncWorkingMemory("s", frail.kept).get_task_state()
    assert after == changed
    changed = memory.update_task_state(change)
    assert changed is not None
    assert changed.current_step == 4
    assert isinstance(storage.fallback, InMemoryStorage)
    assert not memory.stats().lost
