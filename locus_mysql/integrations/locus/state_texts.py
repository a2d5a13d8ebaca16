"""Encodes and decodes the state of an agent, faster than Locus' own `to_checkpoint` and `from_checkpoint`."""

from __future__ import annotations

from collections.abc import Callable

from locus.core.messages import Message
from locus.core.state import AgentState
from pydantic_core import PydanticSerializationError

from ...errors import CorruptCheckpoint, InvalidInput
from ...families.checkpoints.coding.codec import EncodedList, EncodedState, encode
from ...families.checkpoints.new_checkpoint import EncodedCheckpoint
from ...runtime.exact_json import decode_json, unencodable
from .message_texts import (
    NO_MESSAGES,
    EncodedMessages,
    dump_messages,
    encode_messages,
)
from .serializers import serializer_of


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
