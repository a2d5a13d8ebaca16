"""What a thread is doing: whether it waits for a person, failed, or is done; and its first and last message.

Pure functions of a state, or of the part of it that a list of threads reads. They recognise the interrupts and errors
of LangGraph and of Locus; of other states they judge by the last message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .records import Message, PendingWrite, StatusName, ThreadPreview, ThreadStatus

#: The channels of a graph's pending writes that stop it: an interrupt, and an error of a task.
INTERRUPT, ERROR = "__interrupt__", "__error__"

#: The beginning of the channels that hold the next nodes of a graph, and the channels of its other next tasks.
NEXT_NODE, NEXT_TASKS = "branch:to:", ("__start__", "__pregel_tasks")

#: Fields of a request to a person that contain its question, in the order of preference.
QUESTIONS = ("question", "message", "prompt", "description", "action", "text")

#: Characters of a reason.
REASON_CHARACTERS = 2_000


def preview_of(
    first: Sequence[Message],
    last: Sequence[Message],
    state: Mapping[str, Any],
    writes: Sequence[PendingWrite] = (),
    metadata: Mapping[str, Any] | None = None,
) -> ThreadPreview:
    """Return the preview of a thread.

    Args:
        first: Messages at the beginning of its conversation.
        last: Messages at its end.
        state: Its state, or the part that was read; of a channel that was not read, the name is enough.
        writes: The pending writes of its tasks.
        metadata: The metadata of its newest checkpoint.
    """
    began = next((one for one in first if one.role == "user" and one.text), first[0] if first else None)
    ended = next((one for one in reversed(last) if one.role != "tool" and (one.text or one.tool_calls)), None)
    return ThreadPreview(status_of(state, last, writes, metadata or {}), began, ended)


def status_of(
    state: Mapping[str, Any],
    messages: Sequence[Message],
    writes: Sequence[PendingWrite] = (),
    metadata: Mapping[str, Any] | None = None,
) -> ThreadStatus | None:
    """Return the status of a state; None if nothing shows it.

    Args:
        state: The state.
        messages: The last messages of its conversation.
        writes: The pending writes of its tasks.
        metadata: The metadata of its checkpoint.
    """
    interrupts = [write.value for write in writes if write.channel == INTERRUPT]
    questions = [question_of(value) for written in interrupts for value in _each(written)]
    last = messages[-1] if messages else None
    if last is not None and last.role == "tool" and (asked := _asked_by_tool(last.text)) is not None:
        questions.append(asked)
    if interrupts or questions:
        return _status("waiting", "\n".join(dict.fromkeys(filter(None, questions))))
    errors = [_text(write.value) for write in writes if write.channel == ERROR]
    if errors:
        return _status("failed", errors[-1])
    nodes = [name.removeprefix(NEXT_NODE) for name in state if name.startswith(NEXT_NODE)]
    if nodes or any(name in state and state[name] not in (None, []) for name in NEXT_TASKS):
        return _status("unfinished", ", ".join(nodes))
    if metadata and isinstance(metadata.get("step"), int) and isinstance(metadata.get("source"), str):
        return ThreadStatus("done")  # a graph of LangGraph without a next node
    return None if last is None else _by_conversation(state, last)


def _by_conversation(state: Mapping[str, Any], last: Message) -> ThreadStatus | None:
    """Return the status of an agent by its last message."""
    if last.role == "assistant" and not last.tool_calls:
        return ThreadStatus("done")
    errors = state.get("errors")
    if isinstance(errors, list) and errors:
        return _status("failed", _text(errors[-1]))
    if last.role == "assistant":
        return _status("unfinished", ", ".join(dict.fromkeys(call.name for call in last.tool_calls)))
    return ThreadStatus("unfinished") if last.role in {"user", "tool"} else None


def question_of(value: Any) -> str:
    """Return the question in the value of an interrupt: its text, or the field that most likely contains it."""
    if isinstance(value, Mapping) and "value" in value:  # LangGraph's object around the value
        value = value["value"]
    if isinstance(value, Mapping):
        requests = value.get("action_requests")
        if isinstance(requests, list) and requests:  # LangChain's middleware that asks before a tool is called
            return "\n".join(question_of(request) for request in requests[:10])
        for name in QUESTIONS:
            if isinstance(value.get(name), str) and value[name].strip():
                return str(value[name])
    return _text(value)


def _asked_by_tool(text: str) -> str | None:
    """Return the question in the result of a tool of Locus that interrupts its agent; None in any other."""
    if '"__interrupt__": true' not in text[:REASON_CHARACTERS]:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return question_of(found) if isinstance(found, Mapping) else None


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value[:10]
    else:
        yield value


def _status(name: StatusName, reason: str) -> ThreadStatus:
    return ThreadStatus(name, reason.strip()[:REASON_CHARACTERS])


def _text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
