"""The task of a session for pages: its status, its progress and its description, from stored values of any shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

#: The statuses of threads that look like those of tasks.
_LOOKS = {"waiting": "waiting", "failed": "failed", "cancelled": "failed", "completed": "done"}


class Task(NamedTuple):
    """A task.

    Args:
        title: Its id.
        status: Its status in words.
        look: The status of a thread that looks like it.
        percent: Its progress, from 0 to 100; None if unknown.
        steps: Its steps in words; empty if unknown.
        description: What is being done.
        error: Why it failed or was cancelled.
    """

    title: str
    status: str
    look: str
    percent: int | None
    steps: str
    description: str
    error: str


def task_of(state: Mapping[str, Any] | None) -> Task | None:
    """Return the task in a stored state; None without one, or for a state that is not a task."""
    if state is None or not isinstance(state.get("task_id"), str) or not isinstance(state.get("status"), str):
        return None
    status, progress = state["status"], state.get("progress")
    known = isinstance(progress, int | float) and not isinstance(progress, bool) and 0 <= progress <= 1
    step, total = state.get("current_step"), state.get("total_steps")
    steps = ""
    if isinstance(step, int) and step >= 0:
        steps = f"step {step} of {total}" if isinstance(total, int) else f"step {step}" if step else ""
    description, error = state.get("description"), state.get("error")
    return Task(
        title=state["task_id"],
        status=status[:40],
        look=_LOOKS.get(status, "unfinished"),
        percent=round(100 * float(progress)) if known and progress is not None else None,
        steps=steps,
        description=description if isinstance(description, str) else "",
        error=error if isinstance(error, str) else "",
    )
