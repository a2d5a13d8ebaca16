"""The JSON text of a conversation's messages, of which only what is new is encoded: `MessageTexts`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import is_
from typing import Any, NamedTuple

from locus.core.messages import Message

from ..checkpoints.recent import Recent
from .serializers import serializer_of

#: What a message takes in memory beside its text, roughly.
MESSAGE_BYTES = 1_000

_SERIALIZER = serializer_of(tuple[Message, ...])


def dump_messages(messages: Sequence[Message]) -> bytes:
    """The messages' JSON text without the brackets, straight from the models.

    Raises:
        PydanticSerializationError: A text holds a lone surrogate, for one.
    """
    return _SERIALIZER.to_json(tuple(messages))[1:-1]


class _Encoded(NamedTuple):
    """Messages with their text, and what tells whether it still is theirs.

    A message is frozen, but its tool calls and metadata are a list and a dict, which can be changed in place. Where
    they were empty, they must still be; the other messages, ``open``, are encoded again to be compared.
    """

    messages: tuple[Message, ...]
    text: bytes
    empty: Sequence[Any]
    open: Sequence[Message]
    open_text: bytes

    def is_prefix_of(self, messages: tuple[Message, ...]) -> bool:
        """Whether messages begin with the very same ones, unchanged."""
        return (
            len(messages) >= len(self.messages)
            and all(map(is_, self.messages, messages))
            and not any(self.empty)
            and (not self.open or dump_messages(self.open) == self.open_text)
        )


class MessageTexts:
    """Encodes the messages of threads.

    Of those that the last save of the thread held too, as the same objects, the text is kept.

    Args:
        limit_bytes: What messages and texts kept may take at most.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._recent: Recent[_Encoded] = Recent(limit_bytes)

    def encode(self, key: Hashable, messages: tuple[Message, ...]) -> bytes:
        """The messages' JSON text without the brackets. Raises as `dump_messages` does.

        Args:
            key: The thread.
            messages: All its messages.
        """
        messages = tuple(messages)
        before = self._recent.get(key)
        if before is None or not before.is_prefix_of(messages):
            before = _Encoded((), b"", (), (), b"")
        added = messages[len(before.messages) :]
        if not added:
            return before.text
        text = dump_messages(added)
        if before.text:
            text = b",".join((before.text, text))  # formatting takes 30 times as long
        empty = list(before.empty)
        opened = list(before.open)
        for message in added:
            if _is_closed(message):
                empty += message.tool_calls, message.metadata
            else:
                opened.append(message)
        open_text = dump_messages(opened) if len(opened) > len(before.open) else before.open_text
        encoded = _Encoded(messages, text, empty, opened, open_text)
        self._recent.put(key, encoded, len(text) + len(messages) * MESSAGE_BYTES)
        return text


def _is_closed(message: Message) -> bool:
    """Whether nothing in the message can be changed but by filling what is empty."""
    return type(message) is Message and not message.tool_calls and not message.metadata
