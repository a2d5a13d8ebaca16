"""The JSON text of a conversation's messages, of which only new ones are encoded: `EncodedMessages`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, NamedTuple

from locus.core.messages import Message

from .serializers import serializer_of

#: Approximate memory of a message besides its text.
MESSAGE_BYTES = 1_000

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
