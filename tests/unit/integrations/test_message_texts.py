"""Encoding only the messages that are new: the text is always that of all of them."""

from __future__ import annotations

from typing import Any

import pytest
from locus.core.messages import Message, ToolCall
from pydantic import ConfigDict
from pydantic_core import PydanticSerializationError

from locus_mysql.integrations.message_texts import MessageTexts, dump_messages

HELLO, ANSWER = Message.user("hello"), Message.assistant("well …")
CALLING = Message.assistant(None, tool_calls=[ToolCall(id="c1", name="add", arguments={"a": [1]})])
NOTED = Message(role="user", content="noted", metadata={"at": {"hour": 1}})


class Noted(Message):
    """A message of a user's own kind, which can be changed."""

    model_config = ConfigDict(frozen=False)


@pytest.fixture
def texts() -> MessageTexts:
    return MessageTexts(1_000_000)


def encoded(texts: MessageTexts, *messages: Message) -> bytes:
    """The text, which must be that of the messages as they are now."""
    text = texts.encode("t", messages)
    assert text == dump_messages(messages)
    return text


@pytest.mark.parametrize("keeps", [1_000_000, 0])
def test_a_conversation_that_grows_shrinks_and_branches(keeps: int) -> None:
    texts = MessageTexts(keeps)
    messages = [HELLO, ANSWER, CALLING, NOTED, HELLO, Message.user("b"), ANSWER]
    for end in (0, 1, 3, 3, 4, 7, 2, 5, 0, 7):
        encoded(texts, *messages[:end])
    encoded(texts, *messages[:3], Message.user("another"), *messages[4:])
    encoded(texts, *reversed(messages))


def test_only_what_is_new_is_encoded(texts: MessageTexts, monkeypatch: pytest.MonkeyPatch) -> None:
    texts.encode("t", (HELLO,) * 100)
    dumped: list[Any] = []

    def counting(messages: Any) -> bytes:
        dumped.extend(messages)
        return dump_messages(messages)

    monkeypatch.setattr("locus_mysql.integrations.message_texts.dump_messages", counting)
    texts.encode("t", (*(HELLO,) * 100, ANSWER))
    assert dumped == [ANSWER]


def test_what_is_changed_in_place_is_noticed(texts: MessageTexts) -> None:
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


def test_threads_have_texts_of_their_own(texts: MessageTexts) -> None:
    assert texts.encode("a", (HELLO,)) != texts.encode("b", (ANSWER,))
    assert texts.encode("a", (HELLO, ANSWER)) == dump_messages((HELLO, ANSWER))


def test_a_list_of_messages_that_is_changed_is_no_trap(texts: MessageTexts) -> None:
    messages = [HELLO]
    texts.encode("t", messages)  # type: ignore[arg-type]
    messages[0] = ANSWER
    assert texts.encode("t", messages) == dump_messages([ANSWER])  # type: ignore[arg-type]


def test_what_has_no_utf8_form_fails_every_time(texts: MessageTexts) -> None:
    encoded(texts, HELLO)
    for _ in range(2):
        with pytest.raises(PydanticSerializationError):
            texts.encode("t", (HELLO, Message.user("\ud800")))
    encoded(texts, HELLO, ANSWER)
