"""Tools of a Locus agent for its working memory: `working_memory_tools`."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from locus.tools.decorator import Tool
from locus.tools.output import ToolOutput
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema

from ...engine.operation import named
from ...errors import (
    CapacityExceeded,
    CorruptCheckpoint,
    InvalidInput,
    Unavailable,
    UsageError,
)
from ...families.working.operations import Procedure, SessionOperations
from ...families.working.records import FINAL, TaskState
from ...families.working.store import SyncWorkingMemory, WorkingMemory
from ...families.working.values import MISSING
from .working_hook import Memory, WorkingMemoryHook, WorkingSessions

__all__ = ["WorkingMemoryHook", "WorkingSessions", "working_memory_tools"]

#: Maximum number of characters in a tool's result, of keys in a list, and of notes.
ANSWER_LIMIT, KEYS_LIMIT, NOTES_LIMIT = 16_000, 200, 200

Key: TypeAlias = Annotated[str, Field(description="A short name, such as 'customer' or 'plan/step-2'.")]


class Arguments(BaseModel):
    """The arguments of a tool, and what it does."""

    model_config = ConfigDict(extra="forbid")

    @abstractmethod
    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        """Carry out a call; returns the result as text, with the prefix before the names of tools."""


class Remember(Arguments):
    """Store a value under a name for this session; replaces the value of that name. It outlives this process."""

    key: Key
    value: Annotated[
        str | int | float | bool | dict[str, Any] | list[Any] | None,
        Field(description="Any JSON value. Text is kept as it is."),
    ]
    ttl_s: Annotated[float | SkipJsonSchema[None], Field(description="The value expires after this many seconds.")] = (
        None
    )

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        yield from session.set(self.key, self.value, self.ttl_s)
        return f"{self.key!r} is kept."


class Recall(Arguments):
    """Read what was kept under a name."""

    key: Key

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        value = yield from session.get(self.key, MISSING)
        if value is MISSING:
            keys = yield from session.list_keys()
            raise InvalidInput(f"Nothing is kept under {self.key!r}. {_listed(keys)}")
        return _short(json.dumps(value, ensure_ascii=False))


class ListRemembered(Arguments):
    """List the names under which values are kept."""

    pattern: Annotated[str, Field(description="List only names that match: * matches any text, ? one character.")] = "*"

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        return _short(_listed((yield from session.list_keys(self.pattern))))


class Forget(Arguments):
    """Remove what was kept under a name."""

    key: Key

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        gone = yield from session.delete(self.key)
        return f"{self.key!r} is forgotten." if gone else f"Nothing was kept under {self.key!r}."


class Note(Arguments):
    """Add a note after all others: a finding, a decision and its reason, a next step. Notes cannot be changed."""

    text: Annotated[str, Field(min_length=1, description="One thought, in whole sentences.")]

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        yield from session.append_scratchpad(self.text)
        return "The note is kept."


class ReadNotes(Arguments):
    """Read the last notes, oldest first."""

    last: Annotated[int, Field(ge=1, le=NOTES_LIMIT, description="The number of notes.")] = 20

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        notes = yield from session.get_scratchpad(self.last)
        shown: list[str] = []
        room = ANSWER_LIMIT
        for note in reversed(notes):
            shown.append(_short(json.dumps(note, ensure_ascii=False), room))
            room -= len(shown[-1]) + 1
            if room < 100:
                break
        left_out = f"{len(notes) - len(shown)} before these are left out, as all are too long.\n"
        text = "\n".join(reversed(shown))
        return (left_out if len(shown) < len(notes) else "") + text if notes else "There are no notes."


class BeginTask(Arguments):
    """Record the task before you begin it. An unfinished task must be ended first, with update_task."""

    description: Annotated[str, Field(min_length=1, description="What is to be done, in one sentence.")]
    total_steps: Annotated[int | SkipJsonSchema[None], Field(ge=1, description="The number of steps, if known.")] = None
    task_id: Annotated[
        str | SkipJsonSchema[None], Field(min_length=1, max_length=512, description="Its name, if it has one.")
    ] = None

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        def change(task: TaskState | None) -> TaskState:
            if task is not None and task.status not in FINAL:
                raise InvalidInput(
                    f"There is a task already: {_summary(task)} Go on, or end it with {prefix}update_task."
                )
            begun = TaskState(task_id=self.task_id or "task", total_steps=self.total_steps)
            return begun.start(self.description)

        return _summary((yield from session.update_task_state(change)))


class UpdateTask(Arguments):
    """Record the progress of the task, after each step and at its end."""

    status: Annotated[
        Literal["running", "waiting", "completed", "failed", "cancelled"],
        Field(description="waiting: for a person or an event. completed, failed and cancelled end the task."),
    ] = "running"
    steps_done: Annotated[
        int | SkipJsonSchema[None],
        Field(ge=0, description="The number of steps finished since the last update; 1 by default while running."),
    ] = None
    total_steps: Annotated[
        int | SkipJsonSchema[None], Field(ge=1, description="The number of steps, if it has changed.")
    ] = None
    description: Annotated[
        str | SkipJsonSchema[None], Field(description="The current step, or what the task waits for.")
    ] = None
    reason: Annotated[
        str | SkipJsonSchema[None], Field(description="Why it failed or was cancelled; required for a failed task.")
    ] = None

    def run(self, session: SessionOperations, prefix: str) -> Procedure[str]:
        def change(task: TaskState | None) -> TaskState:
            if task is None:
                raise InvalidInput(f"There is no task yet. Begin one with {prefix}begin_task.")
            return _updated(task, self)

        return _summary((yield from session.update_task_state(change)))


def working_memory_tools(memory: Memory | WorkingSessions, *, prefix: str = "") -> list[Tool]:
    """Tools with which an agent keeps its working memory, and finds it again after a crash or in another process.

    They are ``remember``, ``recall``, ``list_remembered`` and ``forget`` for variables, ``note`` and ``read_notes`` for
    the scratchpad, ``begin_task`` and ``update_task`` for the task state. A call that fails is reported to the model
    as failed, with advice: the run continues, even if the storage is unavailable. The tools may read and
    write every variable of the session.

    Args:
        memory: The session; or a `WorkingSessions`, which chooses one for each run of an agent that serves many users,
            who must not share one.
        prefix: A prefix of the tools' names, for an agent that has other tools with these names.

    Example:
        ```python
        memory = WorkingMemory("session-1", "mysql://user:password@localhost/app")
        agent = Agent(model=model, tools=working_memory_tools(memory), hooks=[WorkingMemoryHook(memory)])
        result = await agent.arun("Book the trip to Bonn.")
        await memory.close()
        ```
    """
    return [_tool(memory, prefix, name, arguments) for name, arguments in TOOLS.items()]


TOOLS: Mapping[str, type[Arguments]] = {
    "remember": Remember,
    "recall": Recall,
    "list_remembered": ListRemembered,
    "forget": Forget,
    "note": Note,
    "read_notes": ReadNotes,
    "begin_task": BeginTask,
    "update_task": UpdateTask,
}


def _updated(task: TaskState, given: UpdateTask) -> TaskState:
    """Return the task state that a model's arguments describe."""
    if given.status == "running":
        steps = 1 if given.steps_done is None else given.steps_done
        return task.advance(steps, total_steps=given.total_steps, description=given.description)
    if given.total_steps is not None:
        task = task.advance(0, total_steps=given.total_steps)
    if given.status == "completed":
        return task.complete(given.description)
    if given.steps_done:
        task = task.advance(given.steps_done, description=given.description)
    if given.status == "waiting":
        return task.wait(given.description)
    if given.status == "cancelled":
        return task.cancel(given.reason)
    if not given.reason:
        raise InvalidInput("A failed task needs a reason. Call again, and say why it failed.")
    return task.fail(given.reason)


def _tool(memory: Memory | WorkingSessions, prefix: str, name: str, arguments: type[Arguments]) -> Tool:
    """Return a tool, asynchronous or blocking like its memory."""
    name = f"{prefix}{name}"

    def steps(session: Memory, given: dict[str, Any]) -> Procedure[str]:
        try:
            return named(arguments.model_validate(given).run(session._operations, prefix), name)
        except ValidationError as error:
            raise InvalidInput(f"Wrong arguments: {_problems(error)}. Correct them and call {name} again.") from None

    async def call_awaited(**given: Any) -> str | ToolOutput:
        session = memory.of_this_tool_call() if isinstance(memory, WorkingSessions) else memory
        try:
            if isinstance(session, WorkingMemory):
                return await session._run(steps(session, given))
            return await asyncio.to_thread(session._run, steps(session, given))
        except (UsageError, CorruptCheckpoint, Unavailable) as error:
            return _failure(error)

    fn: Callable[..., Any] = call_awaited
    if isinstance(memory, SyncWorkingMemory):

        def call_blocking(**given: Any) -> str | ToolOutput:
            try:
                return memory._run(steps(memory, given))
            except (UsageError, CorruptCheckpoint, Unavailable) as error:
                return _failure(error)

        fn = call_blocking
    schema = arguments.model_json_schema()
    parameters = {
        "type": "object",
        "properties": {
            parameter: {
                key: value for key, value in one.items() if key != "title" and (key, value) != ("default", None)
            }
            for parameter, one in schema.get("properties", {}).items()
        },
        "required": schema.get("required", []),
    }
    return Tool(name=name, description=schema["description"], parameters=parameters, fn=fn)


def _failure(error: Exception) -> ToolOutput:
    """Return a failed call's message for a model, which can make room, but cannot change options."""
    if isinstance(error, CapacityExceeded):
        message = (
            f"There is no room: {error.limit} would be {error.used}, and may be {error.allowed}. Nothing was changed. "
            "Forget values that are no longer needed, or keep less."
        )
    elif isinstance(error, Unavailable):
        message = (
            "Working memory does not answer now, so this may not be kept. Go on without it, and try again later if it "
            "still matters."
        )
    else:
        message = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return ToolOutput(_short(message), is_error=True)


def _summary(task: TaskState | None) -> str:
    if task is None:
        return "There is no task."
    steps = f"step {task.current_step}" + (f" of {task.total_steps}" if task.total_steps else "")
    why = f" ({_short(task.error, 500)})" if task.error else ""
    return f"Task {task.task_id!r} is {task.status}{why}, {steps}: {_short(task.description, 500)}"


def _listed(keys: list[str]) -> str:
    if not keys:
        return "Nothing is kept yet."
    more = f", and {len(keys) - KEYS_LIMIT} more" if len(keys) > KEYS_LIMIT else ""
    return f"There is: {', '.join(map(repr, keys[:KEYS_LIMIT]))}{more}."


def _short(text: str, limit: int = ANSWER_LIMIT) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters are left out)"


def _problems(error: ValidationError) -> str:
    found = error.errors(include_input=False, include_url=False, include_context=False)[:3]
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'they'}: {one['msg']}" for one in found)
