"""The records that working memory returns: `TaskState` and `SessionStats`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from ...errors import InvalidInput
from .calls import Limits

Status: TypeAlias = Literal["pending", "running", "waiting", "completed", "failed", "cancelled"]

#: The final statuses: a task with one of these does not change any more.
FINAL: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})


def _no_number(value: object) -> object:
    if isinstance(value, int | float):
        raise ValueError("must be a time as text, such as 2026-01-31T12:00:00Z")
    return value


#: A time with a zone. pydantic takes numbers too, and guesses whether they are seconds or milliseconds.
Moment: TypeAlias = Annotated[AwareDatetime, BeforeValidator(_no_number)]


class TaskState(BaseModel):
    """The progress of an agent with a task. Frozen: its methods return a new one; `WorkingMemory` stores it.

    Args:
        task_id: The task's id, 1 to 512 characters.
        status: ``pending`` has not begun; ``waiting`` began and waits for something; ``completed``, ``failed`` and
            ``cancelled`` are over.
        current_step: The number of steps that are done.
        total_steps: The number of steps, if it is known.
        progress: From 0 to 1.
        description: What is being done.
        error: Why it failed, or was cancelled; required for a failed task.
        started_at: When it began; aware.
        updated_at: When this was written; aware.
        data: Further JSON values of the caller.

    Raises:
        pydantic.ValidationError: An impossible combination, such as step 5 of 3, or a completed task at 40 %.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    task_id: Annotated[str, Field(min_length=1, max_length=512)]
    status: Status = "pending"
    current_step: Annotated[int, Field(ge=0)] = 0
    total_steps: Annotated[int, Field(ge=1)] | None = None
    progress: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    description: str = ""
    error: str | None = None
    started_at: Moment | None = None
    updated_at: Moment = Field(default_factory=lambda: datetime.now(UTC))
    data: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.total_steps is not None and self.current_step > self.total_steps:
            raise ValueError(f"step {self.current_step} of {self.total_steps} cannot be; raise total_steps")
        if self.status == "pending" and (self.started_at or self.current_step or self.progress):
            raise ValueError("a pending task has not begun: it has no started_at, no steps and no progress")
        if self.status in {"running", "waiting", "completed", "failed"} and self.started_at is None:
            raise ValueError(f"a {self.status} task has begun: give started_at, or use start()")
        if self.status == "completed" and self.progress != 1:
            raise ValueError("a completed task has a progress of 1")
        if self.status == "completed" and self.total_steps not in {None, self.current_step}:
            raise ValueError(f"a completed task has done all of its {self.total_steps} steps")
        if self.status == "failed" and not self.error:
            raise ValueError("a failed task says why, in error")
        if self.error is not None and self.status not in {"failed", "cancelled"}:
            raise ValueError(f"a {self.status} task has no error")
        if self.started_at is not None and self.updated_at < self.started_at:
            raise ValueError("updated_at is before started_at")
        return self

    def start(self, description: str | None = None) -> TaskState:
        """Begin a pending task."""
        if self.status != "pending":
            raise InvalidInput(f"Task {self.task_id!r} is {self.status}; only a pending task can be started.")
        return self._next(status="running", description=description)

    def advance(
        self,
        steps: int = 1,
        *,
        total_steps: int | None = None,
        description: str | None = None,
        progress: float | None = None,
        data: dict[str, Any] | None = None,
    ) -> TaskState:
        """Begin a pending task, or resume a waiting one, and count steps.

        Args:
            steps: The number of steps that were done; negative for steps that are to be done again.
            total_steps: The number of steps, if it has changed.
            description: What is being done now; None: as before.
            progress: From 0 to 1; by default the part of the steps that is done, if their number is known.
            data: Values that are added to the task's data.

        Raises:
            InvalidInput: The task is over, or would have done more steps than there are.
        """
        step, total = self.current_step + steps, self.total_steps if total_steps is None else total_steps
        if progress is None:
            progress = max(0.0, min(1.0, step / total)) if total else self.progress
        count = {"current_step": step, "total_steps": total, "progress": progress}
        return self._next(status="running", description=description, data=data, **count)

    def wait(self, description: str | None = None) -> TaskState:
        """Wait for something, such as a person's answer; `advance` resumes the task."""
        return self._next(status="waiting", description=description)

    def complete(self, description: str | None = None, *, data: dict[str, Any] | None = None) -> TaskState:
        """End with success: all steps are done."""
        step = self.current_step if self.total_steps is None else self.total_steps
        return self._next(status="completed", current_step=step, progress=1.0, description=description, data=data)

    def fail(self, error: str) -> TaskState:
        """End without success, with the reason."""
        return self._next(status="failed", error=error)

    def cancel(self, reason: str | None = None) -> TaskState:
        """End because the task is no longer wanted."""
        return self._next(status="cancelled", error=reason)

    def _next(self, *, status: Status, description: str | None = None, data: Any = None, **changes: Any) -> TaskState:
        if self.status in FINAL:
            raise InvalidInput(f"Task {self.task_id!r} is {self.status}, so it cannot become {status}. Begin another.")
        now = _later(self.updated_at)
        changed = {**dict(self), **changes, "status": status, "updated_at": now}
        if changed["started_at"] is None and status != "cancelled":
            changed["started_at"] = now
        if description is not None:
            changed["description"] = description
        if data is not None:
            changed["data"] = {**self.data, **data}
        try:
            return type(self)(**changed)
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
            path = ".".join(map(str, problem["loc"]))
            message = problem["msg"].removeprefix("Value error, ")
            raise InvalidInput(f"Task {self.task_id!r}: {f'{path}: ' if path else ''}{message}.") from None


def _later(than: datetime) -> datetime:
    """Return the current time, but never one before another: clocks may be set back."""
    return max(datetime.now(UTC), than)


@dataclass(frozen=True, slots=True)
class SessionStats:
    """A session's content in numbers, and whether its storage serves it.

    Args:
        keys: Variables, without expired ones.
        size_bytes: Bytes of variables, task state and notes.
        scratchpad_entries: Notes.
        checkpoints: Checkpoints.
        expires_in_s: Seconds until it expires unless it is used; None if it does not.
        limits: Its limits.
        degraded: Whether its storage is unavailable and another one serves it: writes are lost if this process ends
            before the storage is available again.
        pending: The number of writes that wait for the storage.
        lost: Descriptions of writes that were dropped, as another process had written to the storage meanwhile.
    """

    keys: int
    size_bytes: int
    scratchpad_entries: int
    checkpoints: int
    expires_in_s: float | None
    limits: Limits
    degraded: bool = False
    pending: int = 0
    lost: tuple[str, ...] = ()
