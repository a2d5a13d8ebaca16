"""Recognises the conversation in a state of any framework. Pure functions that accept any JSON.

They recognise the messages of Locus, of OpenAI's, Anthropic's, Gemini's and Bedrock's interfaces, of LangChain in each
form in which it dumps them, and of Pydantic AI, whose messages have parts of several kinds. Tool calls are joined with
their results: with the messages that answer them, by id, and with the ``tool_executions`` of a Locus state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from .msgpack import Items
from .records import Message, ToolCall, Window

#: Paths of the messages in a state, the most likely one first.
MESSAGE_PATHS: Sequence[tuple[str, ...]] = (
    ("messages",),
    ("channel_values", "messages"),
    ("chat_history",),
    ("history",),
    ("conversation",),
)

#: Number of first items of a list of which one must be a message.
EXAMINED = 10_000

#: The roles of a text among messages, and of an unrecognised item.
TEXT_ROLE, UNKNOWN_ROLE = "message", "unknown"

#: Other names of the roles: LangChain's types and classes, Gemini's, and one that OpenAI used earlier.
ROLES: Mapping[str, str] = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "model": "assistant",
    "SystemMessage": "system",
    "SystemMessageChunk": "system",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
    "FunctionMessage": "tool",
}

#: Names of roles that identify a message without any other field of one.
KNOWN_ROLES = frozenset({"user", "assistant", "system", "tool", "developer", *ROLES})

#: Fields with the time of a message, in its metadata or beside it.
TIMES = ("locus_at", "timestamp", "created_at")

#: Numbers that are read as seconds since 1970: the years 2001 to 2286.
_EPOCH = range(1_000_000_000, 10_000_000_000)


def path_of_messages(state: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the keys that lead to the conversation in a state; None without a recognisable one."""
    for path in MESSAGE_PATHS:
        found: Any = state
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, list | Items) and any(map(_is_message, islice(found, EXAMINED))):
            return path
    return None


def count_messages(state: Mapping[str, Any]) -> int:
    """Return the number of messages that `messages_of` returns."""
    return len(_found(state))


def messages_of(state: Mapping[str, Any]) -> Sequence[Message]:
    """Return the conversation in a state, oldest first; empty if none can be recognised.

    Items among its messages that are not messages are shown in a role of their own, so that nothing is hidden.
    """
    return _messages(state, _found(state))


def part_of_conversation(state: Mapping[str, Any], window: Window) -> tuple[Sequence[Message], int, int]:
    """Return the conversation in a state; of a long one, whose messages are `Items`, only a part.

    Returns:
        The messages; the number of messages before them; the number after them.
    """
    found = _found(state)
    if not isinstance(found, Items):
        return _messages(state, found), 0, 0
    positions = window.range_in(len(found))
    return _messages(state, found[positions.start : positions.stop]), positions.start, len(found) - positions.stop


def _found(state: Mapping[str, Any]) -> Sequence[Any]:
    """Return the list of messages in a state; empty without one."""
    path = path_of_messages(state)
    if path is None:
        return ()
    found: Any = state
    for key in path:
        found = found[key]
    return cast("Sequence[Any]", found)


def _messages(state: Mapping[str, Any], found: Sequence[Any]) -> Sequence[Message]:
    parts = [_part(one) for one in found]
    _join_results(parts, state.get("tool_executions"))
    return [part.message() for part in parts]


def shown_with_calls(messages: Sequence[Message]) -> frozenset[int]:
    """Return the positions of messages that only contain results of calls, which are shown with the calls."""
    answered = {
        call.call_id
        for message in messages
        for call in message.tool_calls
        if call.call_id is not None and (call.result is not None or call.error is not None)
    }

    def only_answers(message: Message) -> bool:
        if message.tool_calls or (message.text and message.role != "tool"):
            return False
        results = _part(message.raw).results
        return bool(results) and all(one.call_id in answered for one in results)

    return frozenset(index for index, message in enumerate(messages) if only_answers(message))


@dataclass(slots=True)
class _Call:
    """A call of a tool, before its result is known."""

    call_id: str | None
    name: str
    arguments: Any
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a call."""

    call_id: str | None
    name: str | None
    text: str
    failed: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """A message, and the results in it."""

    role: str
    text: str
    at: datetime | None
    calls: Sequence[_Call]
    results: Sequence[_Result]
    raw: Any

    def message(self) -> Message:
        """Return the call as a record."""
        calls = [ToolCall(call.call_id, call.name, call.arguments, call.result, call.error) for call in self.calls]
        return Message(self.role, self.text, self.at, calls, self.raw)


def _is_message(value: Any) -> bool:
    fields = _fields(value)
    return fields is not None and (
        _role(fields) in KNOWN_ROLES or not {"content", "parts", "tool_calls"}.isdisjoint(fields)
    )


def _fields(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of an item without LangChain's wrapper, or that of an event; None if it has no role."""
    if not isinstance(value, Mapping):
        return None
    inner, named = value, None
    kind = value.get("type")
    if isinstance(kind, str) and isinstance(call_id := value.get("call_id", value.get("id")), str):
        if kind.endswith("_call"):  # an item of OpenAI's Responses; a hosted tool has its result in it
            call = {"name": kind.removesuffix("_call"), **value, "id": call_id}
            return {
                "role": "assistant",
                "tool_calls": [{**call, "result": _first(value, "output", "outputs", "results")}],
            }
        if kind.endswith("_call_output"):
            output = value.get("output")
            has_text = _text_of(output if isinstance(output, list) else [output])
            return {"role": "tool", "tool_call_id": call_id, "content": output if has_text else _as_text(output)}
    if isinstance(parts := value.get("parts"), list) and any(isinstance(_kind_of(part), str) for part in parts):
        return _of_parts(value, parts)
    if isinstance(kwargs := value.get("kwargs"), Mapping) and isinstance(path := value.get("id"), list):
        inner, named = kwargs, path[-1] if path else None
    elif isinstance(data := value.get("data"), Mapping) and isinstance(value.get("type"), str):
        inner, named = data, value["type"]
    elif isinstance(message := value.get("message"), Mapping) and _role(message):
        inner = {"timestamp": value.get("timestamp"), **message}
    elif isinstance(content := value.get("content"), Mapping) and _role(content):
        inner = {"timestamp": value.get("timestamp"), **content}
    if _role(inner):
        return inner
    return {**inner, "type": named} if isinstance(named, str) and named else None


def _kind_of(part: Any) -> Any:
    return part.get("part_kind") if isinstance(part, Mapping) else None


def _of_parts(value: Mapping[str, Any], parts: Sequence[Any]) -> Mapping[str, Any]:
    """Return the fields of a request or response whose parts have kinds, in Anthropic's form."""
    blocks: list[Any] = []
    for part in parts:
        kind = _kind_of(part)
        if kind == "tool-call":
            arguments = part.get("args")
            arguments = _parsed(arguments) if isinstance(arguments, str) else arguments
            blocks.append(
                {"type": "tool_use", "id": part.get("tool_call_id"), "name": part.get("tool_name"), "input": arguments}
            )
        elif kind in ("tool-return", "retry-prompt") and part.get("tool_call_id"):
            returned = {"tool_use_id": part["tool_call_id"], "content": _as_text(part.get("content"))}
            blocks.append({"type": "tool_result", "is_error": kind == "retry-prompt", **returned})
        elif kind == "thinking":
            blocks.append({"type": kind})
        elif isinstance(content := part.get("content") if isinstance(part, Mapping) else None, list):
            blocks += [{"type": one.get("kind")} if isinstance(one, Mapping) else one for one in content]
        else:
            blocks.append(content if isinstance(content, str) else {"type": kind})
    role = "assistant" if value.get("kind") == "response" else "user"
    return {"role": role, "content": blocks, "timestamp": value.get("timestamp")}


def _role(fields: Mapping[str, Any]) -> str:
    """Return the role by its name here; empty if it is unknown."""
    role = fields.get("role")
    if isinstance(role, Mapping):  # an enum, as some encoders write it
        role = role.get("value")
    if not (isinstance(role, str) and role):
        role = fields.get("type")
    return ROLES.get(role, role) if isinstance(role, str) else ""


def _part(value: Any) -> _Part:
    fields = _fields(value)
    if fields is None:
        if isinstance(value, str):
            return _Part(TEXT_ROLE, value, None, (), (), value)
        return _Part(UNKNOWN_ROLE, "", None, (), (), value)
    content = fields.get("content")
    if content is None:
        content = fields.get("parts", fields.get("refusal"))
    blocks = content if isinstance(content, list) else [content]
    role, text = _role(fields), _text_of(blocks)
    results = [result for block in blocks if (result := _result_in(block)) is not None]
    if role == "tool":
        failed = fields.get("status") == "error" or fields.get("is_error") is True
        results.append(_Result(_text(fields.get("tool_call_id")), _text(fields.get("name")), text, failed))
    return _Part(role, text, _time_of(fields), _calls_of(fields, blocks), results, value)


def _text_of(blocks: Sequence[Any]) -> str:
    return "\n".join(text for block in blocks if (text := _text_in(block)))


def _text_in(block: Any) -> str:
    """Return the text of a block of a message's content; the type of a block without text."""
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping):
        if isinstance(text := block.get("text"), str):
            return text
        kind = block.get("type")
        if kind in ("tool_use", "tool_result", "tool_call", "thinking", "reasoning", "redacted_thinking"):
            return ""
        return f"[{kind}]" if isinstance(kind, str) and kind else ""
    if block is None or isinstance(block, list):
        return ""
    return json.dumps(block)


def _result_in(block: Any) -> _Result | None:
    """Return the result in a block of content, in Anthropic's, Gemini's or Bedrock's form."""
    if not isinstance(block, Mapping):
        return None
    if isinstance(response := block.get("functionResponse"), Mapping):
        return _Result(
            _text(response.get("id")), _text(response.get("name")), _as_text(response.get("response")), False
        )
    if isinstance(result := block.get("codeExecutionResult"), Mapping):
        failed = result.get("outcome") not in (None, "OUTCOME_OK")
        return _Result(None, "code", _as_text(result.get("output")), failed)
    if isinstance(result := block.get("toolResult"), Mapping):
        content = result.get("content")
        text = _text_of([_bedrock_text(one) for one in content] if isinstance(content, list) else [content])
        return _Result(_text(result.get("toolUseId")), None, text, result.get("status") == "error")
    if block.get("type") != "tool_result":
        return None
    content = block.get("content")
    text = _text_of(content if isinstance(content, list) else [content])
    return _Result(_text(block.get("tool_use_id")), None, text, block.get("is_error") is True)


def _bedrock_text(block: Any) -> Any:
    """Return a block of a result; one with a JSON value as its text."""
    return _as_text(block["json"]) if isinstance(block, Mapping) and "json" in block else block


def _calls_of(fields: Mapping[str, Any], blocks: Sequence[Any]) -> Sequence[_Call]:
    """Return the calls of a message, each once: some libraries write them twice."""
    beside = fields.get("additional_kwargs")
    objects = [block for block in blocks if isinstance(block, Mapping)]
    found: list[_Call] = []
    for source in (
        fields.get("tool_calls"),
        fields.get("invalid_tool_calls"),
        [block for block in objects if block.get("type") == "tool_use"],
        [block["functionCall"] for block in objects if "functionCall" in block],
        [{"name": "code", "input": block["executableCode"]} for block in objects if "executableCode" in block],
        [block["toolUse"] for block in objects if "toolUse" in block],
        beside.get("tool_calls") if isinstance(beside, Mapping) else None,
        [one] if isinstance(one := fields.get("function_call"), Mapping) else None,
    ):
        if not source or not isinstance(source, list):
            continue
        known = {call.call_id for call in found}
        calls = [_call(one) for one in source if isinstance(one, Mapping)]
        found += [call for call in calls if call.call_id not in known or (call.call_id is None and not found)]
    return found


def _call(value: Mapping[str, Any]) -> _Call:
    function = value.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, Mapping) else value
    arguments = _first(inner, "arguments", "args", "input", "action", "queries", "code")
    if isinstance(malformed := value.get("malformed_arguments"), str):
        arguments = malformed
    elif isinstance(arguments, str):
        arguments = _parsed(arguments)
    call_id = _text(value.get("id")) or _text(value.get("call_id")) or _text(value.get("toolUseId"))
    result = value.get("result")
    result = None if result is None else _as_text(result)
    return _Call(call_id, _text(inner.get("name")) or "", arguments, result, _text(value.get("error")))


def _first(fields: Mapping[str, Any], *names: str) -> Any:
    """Return the first of these fields that is not None."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _parsed(text: str) -> Any:
    """Return arguments that are JSON text, decoded; other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class _CallsWithoutIds:
    """Calls without an id and still without a result. Results find them by the tool's name, the last call first."""

    def __init__(self) -> None:
        self._all: list[_Call] = []
        self._by_name: dict[str, list[_Call]] = {}
        self._answered: set[int] = set()

    def add(self, call: _Call) -> None:
        """Append a call."""
        self._all.append(call)
        self._by_name.setdefault(call.name, []).append(call)

    def answered(self, name: str | None) -> _Call | None:
        """Remove and return the last call without a result, of this name if one is given."""
        calls = self._all if name is None else self._by_name.get(name, [])
        while calls:
            call = calls.pop()
            if id(call) not in self._answered:
                self._answered.add(id(call))
                return call
        return None


def _join_results(parts: Sequence[_Part], executions: Any) -> None:
    """Assign each result to its call. Models reuse ids, so a result belongs to the last call before it."""
    called: dict[str, _Call] = {}
    without_ids = _CallsWithoutIds()
    for part in parts:
        for result in part.results:
            call = called.get(result.call_id) if result.call_id else without_ids.answered(result.name)
            if call is not None:
                call.result, call.error = (None, result.text) if result.failed else (result.text, call.error)
        for call in part.calls:
            if call.call_id:
                called[call.call_id] = call
            else:
                without_ids.add(call)
    for execution in _mappings(executions):  # only of the last turn: Locus clears them before each
        call = called.get(_text(execution.get("tool_call_id")) or "")
        if call is not None:
            error = _text(execution.get("error"))
            text = None if error else call.result
            returned = execution.get("result")
            call.result = text if returned is None else _as_text(returned)
            call.error = error or call.error


def _time_of(fields: Mapping[str, Any]) -> datetime | None:
    metadata = fields.get("metadata")
    for source in (metadata, fields):
        if isinstance(source, Mapping):
            for name in TIMES:
                if (moment := _moment(source.get(name))) is not None:
                    return moment
    return None


def _moment(value: Any) -> datetime | None:
    """Return the time of a message, in UTC."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if isinstance(value, int | float) and _EPOCH.start <= value < _EPOCH.stop:
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError):
        pass
    return None


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, Mapping))


def _text(value: Any) -> str | None:
    """Return a text that is not blank; None for anything else."""
    return value if isinstance(value, str) and value else None


def _as_text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError, TypeError):
        return repr(value)[:10_000]
