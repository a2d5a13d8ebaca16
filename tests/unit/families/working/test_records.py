"""Task states: valid values and transitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from locus_mysql.errors import InvalidInput
from locus_mysql.working import TaskState

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"current_step": 5, "total_steps": 3, "status": "running", "started_at": NOW}, "step 5 of 3"),
        ({"started_at": NOW}, "pending"),
        ({"current_step": 1}, "pending"),
        ({"progress": 0.5}, "pending"),
        ({"status": "running"}, "started_at"),
        ({"status": "waiting"}, "started_at"),
        ({"status": "completed", "started_at": NOW, "progress": 0.4}, "progress of 1"),
        ({"status": "completed", "started_at": NOW, "progress": 1, "total_steps": 2}, "all of its 2 steps"),
        ({"status": "failed", "started_at": NOW}, "says why"),
        ({"status": "running", "started_at": NOW, "error": "x"}, "no error"),
        ({"status": "running", "started_at": NOW, "updated_at": NOW - timedelta(1)}, "before started_at"),
        ({"status": "done"}, "status"),
        ({"progress": 1.5}, "progress"),
        ({"progress": float("nan")}, "progress"),
        ({"current_step": -1}, "current_step"),
        ({"total_steps": 0}, "total_steps"),
        ({"started_at": datetime(2026, 1, 1), "status": "running"}, "started_at"),
        ({"data": {"x": object()}}, "data"),
        ({"task_id": ""}, "task_id"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_invalid_task_states_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        TaskState(**{"task_id": "task", **fields})


def test_a_task_goes_from_beginning_to_end() -> None:
    pending = TaskState(task_id="task", total_steps=4)
    assert (pending.status, pending.started_at) == ("pending", None)
    running = pending.start("reading")
    assert (running.status, running.description, running.current_step) == ("running", "reading", 0)
    assert running.started_at == running.updated_at
    second = running.advance(2, data={"a": 1}).advance(data={"b": 2}, description="writing")
    assert (second.current_step, second.progress, second.data) == (3, 0.75, {"a": 1, "b": 2})
    assert (second.description, second.started_at) == ("writing", running.started_at)
    waiting = second.wait("for the user")
    assert (waiting.status, waiting.advance().status) == ("waiting", "running")
    done = waiting.complete()
    assert (done.status, done.current_step, done.progress, done.error) == ("completed", 4, 1.0, None)
    assert pending.status == "pending"


def test_the_number_of_steps_may_change_and_steps_may_be_taken_back() -> None:
    task = TaskState(task_id="task", total_steps=2).advance(2)
    with pytest.raises(InvalidInput, match="step 3 of 2 cannot be; raise total_steps"):
        task.advance()
    more = task.advance(total_steps=6)
    assert (more.current_step, more.total_steps, more.progress) == (3, 6, 0.5)
    back = more.advance(-2)
    assert (back.current_step, back.progress) == (1, 1 / 6)
    with pytest.raises(InvalidInput, match="current_step"):
        back.advance(-2)


def test_progress_is_given_where_steps_are_not_known() -> None:
    running = TaskState(task_id="task").advance(progress=0.3)
    assert (running.current_step, running.progress, running.started_at is not None) == (1, 0.3, True)
    assert running.advance().progress == 0.3


def test_a_finished_task_cannot_change() -> None:
    running = TaskState(task_id="task").start()
    for over in (running.complete(), running.fail("no seats"), running.cancel("not wanted"), running.cancel()):
        for step in (over.advance, over.wait, over.complete, over.cancel, lambda over=over: over.fail("x")):
            with pytest.raises(InvalidInput, match=f"is {over.status}"):
                step()
        with pytest.raises(InvalidInput, match="only a pending task"):
            over.start()
    assert running.fail("no seats").error == "no seats"
    assert TaskState(task_id="task").cancel().started_at is None


def test_steps_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match="step 2 of 1 cannot be"):
        TaskState(task_id="task", total_steps=1).start().advance(2)
    with pytest.raises(InvalidInput, match="'task'"):
        TaskState(task_id="task").start().fail("")
    with pytest.raises(InvalidInput, match="progress"):
        TaskState(task_id="task").advance(progress=2)


def test_a_task_state_is_frozen() -> None:
    with pytest.raises(ValidationError):
        TaskState(task_id="task").status = "running"  # type: ignore[misc]  # that is the point


def test_times_stay_ordered_when_the_clock_is_set_back() -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    running = TaskState(task_id="task", status="running", started_at=ahead, updated_at=ahead)
    assert running.advance().updated_at == ahead


def test_a_time_is_text_and_no_number() -> None:
    with pytest.raises(ValidationError, match="must be a time as text"):
        TaskState(task_id="t", updated_at=1_700_000_000)  # type: ignore[arg-type]
    assert TaskState(task_id="t", updated_at="2026-01-31T12:00:00Z").updated_at.year == 2026  # type: ignore[arg-type]
