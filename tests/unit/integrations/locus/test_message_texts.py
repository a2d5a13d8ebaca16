"""Encoding only new messages yields the same text as encoding all of them."""

from __future__ import annotations

from typing import Any

import pytest
from locus.core.messages import Message, ToolCall
from pydantic import ConfigDict
from pydantic_core import PydanticSerializationError

from locus_mysql.integrations.locus.state_texts import NO_MESSAGES, dump_messages, encode_messages

HELLO, ANSWER = Message.user("hello"), Message.assistant("well …")
CALLING = Message.assistant(None, tool_calls=[ToolCall(id="c1", name="add", arguments={"a": [1]})])
NOTED = Message(role="user", content="noted", metadata={"at": {"hour": 1}})


class Noted(Message):
    """A mutable message class of a user."""

    model_config = ConfigDict(frozen=False)


class Texts:
    """Encodes the messages of one thread at each save."""

    def __init__(self, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._before = NO_MESSAGES

    def encode(self, messages: Any) -> bytes:
        encoded = encode_messages(messages, self._before)
        if self._keeps:
            self._before = encoded
        return encoded.text


@pytest.fixture
def texts() -> Texts:
    return Texts()


def encoded(texts: Texts, *messages: Message) -> bytes:
    """Return the text after checking that it is that of the current messages."""
    text = texts.encode(messages)
    assert text == dump_messages(messages)
    return text


@pytest.mark.parametrize("keeps", [True, False])
def test_a_conversation_that_grows_shrinks_and_branches(keeps: bool) -> None:
    texts = Texts(keeps=keeps)
    messages = [HELLO, ANSWER, CALLING, NOTED, HELLO, Message.user("b"), ANSWER]
    for end in (0, 1, 3, 3, 4, 7, 2, 5, 0, 7):
        encoded(texts, *messages[:end])
    encoded(texts, *messages[:3], Message.user("another"), *messages[4:])
    encoded(texts, *reversed(messages))


def test_only_new_messages_are_encoded(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    texts.encode((HELLO,) * 100)
    dumped: list[Any] = []

    def counting(messages: Any) -> bytes:
        dumped.extend(messages)
        return dump_messages(messages)

    monkeypatch.setattr("locus_mysql.integrations.locus.state_texts.dump_messages", counting)
    texts.encode((*(HELLO,) * 100, ANSWER))
    assert dumped == [ANSWER]


def test_messages_changed_in_place_are_noticed(texts: Texts) -> None:
    plain, calling, noted = (message.model_copy(deep=True) for message in (HELLO, CALLING, NOTED))
    own = Noted(role="user", content="mine")
    messages = (plain, calling, noted, own)
    seen = {encoded(texts, *messages)}
    plain.metadata["cache_control"] = "ephemeral"
    seen.add(encoded(texts, *messages))
    plain.metadata.clear()
    encoded(texts, *messages)
    plain.tool_calls.append(ToolCall(id="c2", name="sub", arguments={}))
    seen.add(encoded(texts, *messages))
    calling.tool_calls[0].arguments["a"].append(2)
    seen.add(encoded(texts, *messages, HELLO))
    noted.metadata["at"]["hour"] = 2
    seen.add(encoded(texts, *messages, HELLO))
    own.content = "yours"
    seen.add(encoded(texts, *messages, HELLO))
    assert len(seen) == 6


def test_a_changed_list_of_messages_is_encoded_correctly(texts: Texts) -> None:
    messages = [HELLO]
    texts.encode(messages)
    messages[0] = ANSWER
    assert texts.encode(messages) == dump_messages([ANSWER])


def test_text_without_a_utf8_form_fails_every_time(texts: Texts) -> None:
    encoded(texts, HELLO)
    for _ in range(2):
        with pytest.raises(PydanticSerializationError):
            texts.encode((HELLO, Message.user("\ud800")))
    encoded(texts, HELLO, ANSWER)
