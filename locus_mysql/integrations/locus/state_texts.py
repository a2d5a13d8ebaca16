"""Encodes and decodes the state of an agent, faster than Locus' own `to_checkpoint` and `from_checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import is_
from typing import Any, NamedTuple

from locus.core.messages import Message
from locus.core.state import AgentState
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, SchemaSerializer

from ...errors import CorruptCheckpoint, InvalidInput
from ...families.checkpoints.coding.codec import EncodedList, EncodedState, encode
from ...families.checkpoints.records import EncodedCheckpoint
from ...runtime.exact_json import decode_json, unencodable

#: Keys of a schema whose values are objects of the model, not schemas.
_OPAQUE = frozenset({"cls", "config", "default", "metadata"})

#: Approximate memory of a message besides its text.
MESSAGE_BYTES = 1_000


@cache
def serializer_of(kind: Any) -> SchemaSerializer:
    """Return the serializer of a type, built from the type's own schema. It is cached.

    A model's own ``ser_json_inf_nan`` determines how NaN is written, and neither a caller nor an enclosing type can
    override it:
    https://docs.pydantic.dev/latest/api/config/#pydantic.config.ConfigDict.ser_json_inf_nan

    Args:
        kind: A model, or a type composed of models.
    """
    return SchemaSerializer(_exact(TypeAdapter(kind).core_schema), {"ser_json_inf_nan": "constants"})


def _exact(schema: Any) -> Any:
    """Return a schema whose models keep NaN and infinities."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_exact, schema))
    if not isinstance(schema, dict):
        return schema
    exact = {name: value if name in _OPAQUE else _exact(value) for name, value in schema.items()}
    if schema.get("type") == "model":
        exact["config"] = {**schema.get("config", {}), "ser_json_inf_nan": "constants"}
    return exact


_SERIALIZER = serializer_of(tuple[Message, ...])


def dump_messages(messages: Sequence[Message]) -> bytes:
    """Return the messages' JSON text without the brackets, directly from the models.

    Raises:
        PydanticSerializationError: For example, a text contains a lone surrogate.
    """
    return _SERIALIZER.to_json(tuple(messages))[1:-1]


class EncodedMessages(NamedTuple):
    """Messages with their text, and the data to check that the text is still valid.

    A message is frozen, but its tool calls and its metadata are a list and a dict, which can be changed in place. Those
    that were empty must still be empty. Messages with one that was not empty, ``open``, are encoded again and compared.
    """

    messages: tuple[Message, ...]
    text: bytes
    empty: Sequence[Any]
    open: Sequence[Message]
    open_text: bytes

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory of this object."""
        return len(self.text) + len(self.messages) * MESSAGE_BYTES

    def is_prefix_of(self, messages: tuple[Message, ...]) -> bool:
        """Return whether these messages begin with the same objects, unchanged."""
        return (
            len(messages) >= len(self.messages)
            and all(map(is_, self.messages, messages))
            and not any(self.empty)
            and (not self.open or dump_messages(self.open) == self.open_text)
        )


NO_MESSAGES = EncodedMessages((), b"", (), (), b"")


def encode_messages(messages: Sequence[Message], before: EncodedMessages = NO_MESSAGES) -> EncodedMessages:
    """Return all messages of a thread with their text. Raises as `dump_messages` does.

    Args:
        messages: The messages.
        before: Those of an earlier state of the thread. Messages that are the same objects are not encoded again.
    """
    messages = tuple(messages)
    if not before.is_prefix_of(messages):
        before = NO_MESSAGES
    added = messages[len(before.messages) :]
    if not added:
        return before
    text = dump_messages(added)
    if before.text:
        text = b",".join((before.text, text))  # formatting by %b takes 30 times as long
    empty = list(before.empty)
    opened = list(before.open)
    for message in added:
        if _is_closed(message):
            empty += message.tool_calls, message.metadata
        else:
            opened.append(message)
    open_text = dump_messages(opened) if len(opened) > len(before.open) else before.open_text
    return EncodedMessages(messages, text, empty, opened, open_text)


def _is_closed(message: Message) -> bool:
    """Return whether a message can only be changed by filling an empty list or dict in it."""
    return type(message) is Message and not message.tool_calls and not message.metadata


def only_calls(method: object, name: str) -> bool:
    """Return whether a method written in Python, bound or not, calls this other one and nothing else."""
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    return code is not None and code.co_names == (name,)


#: Whether Locus' own encoding and decoding only call pydantic, as in locus-sdk 3.0.1. If a later version does more,
#: Locus' methods are called instead of the fast ones here.
_ONLY_DUMPS = only_calls(AgentState.to_checkpoint, "model_dump")
_ONLY_VALIDATES = only_calls(AgentState.from_checkpoint, "model_validate")


def encode_agent(state: AgentState, memo: object = None) -> EncodedCheckpoint:
    """Encode a state like `encode_state`, with the text of the messages as the memo for the thread's next state.

    Args:
        state: The state.
        memo: The memo of an earlier state of the thread, or None.
    """
    before = memo if isinstance(memo, EncodedMessages) else NO_MESSAGES
    kept: list[EncodedMessages] = []

    def dump(messages: tuple[Message, ...]) -> bytes:
        kept.append(encode_messages(messages, before))
        return kept[0].text

    encoded = encode_state(state, dump)
    return EncodedCheckpoint(encoded, kept[0], kept[0].size_bytes) if kept else EncodedCheckpoint(encoded)


def _encodes_like_locus(model: type[AgentState]) -> bool:
    """Return whether a class of states is encoded like Locus' own."""
    return model.to_checkpoint is AgentState.to_checkpoint and model.model_dump is AgentState.model_dump


def encode_state(state: AgentState, dump: Callable[[tuple[Message, ...]], bytes] = dump_messages) -> EncodedState:
    """Return the text of ``state.to_checkpoint()``, but with NaN and infinities, which pydantic would replace by null.

    Messages, which are nearly all of a long conversation, are encoded without intermediate dicts. That takes half the
    time, and allocates no objects that the garbage collector must track.

    Args:
        state: The state.
        dump: Returns the messages' text without the brackets.

    Raises:
        InvalidInput: A value has no JSON form, or is nested too deeply.
    """
    try:
        if not _ONLY_DUMPS or not _encodes_like_locus(type(state)):
            return encode(state.to_checkpoint())
        serializer = serializer_of(type(state))
        try:
            messages = dump(state.messages)
        except PydanticSerializationError:  # a lone surrogate, which `encode` can write
            return encode(serializer.to_python(state, mode="json"))
        others = serializer.to_python(state, mode="json", exclude={"messages"})
        return encode({**others, "messages": EncodedList(messages, len(state.messages))})
    except InvalidInput:
        raise
    except (ValueError, RecursionError):  # pydantic's own; its message may contain part of the state
        raise unencodable(state) from None


def decode_state(text: bytes, thread_id: str) -> AgentState:
    """Return the state in a JSON text, decoded without intermediate dicts.

    Args:
        text: The text.
        thread_id: Its thread, for errors.

    Raises:
        CorruptCheckpoint: The text is not that of an agent's state.
    """
    if _ONLY_VALIDATES:
        try:
            return AgentState.model_validate_json(text)
        except ValueError:
            pass  # the fast decoder refuses lone surrogates and more than 200 levels
    try:
        return AgentState.from_checkpoint(decode_json(text))
    except (
        ValueError,
        TypeError,
        AttributeError,
        CorruptCheckpoint,
    ):  # pydantic's message may contain part of the state
        raise CorruptCheckpoint(
            f"A checkpoint of thread {thread_id!r} is not the state of an agent. Was it saved by another class?"
        ) from None
