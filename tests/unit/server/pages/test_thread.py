"""The message of a thread that a search hit refers to."""

from __future__ import annotations

from locus_mysql.families.inspection.records import Message, ToolCall
from locus_mysql.server.pages.thread import conversation, place_of


def message(text: str, *calls: ToolCall) -> Message:
    return Message("user", text, None, calls, {})


def test_the_last_message_with_most_of_the_words_is_found() -> None:
    call = ToolCall("1", "look_up", {"city": "Bonn"}, "no trains", None)
    messages = conversation(
        [message("Chapter 20"), message("chapter 120"), message("", call), message("A chapter")], {}
    )

    assert place_of(messages, "chapter 20") == 0
    assert place_of(messages, "CHAPTER") == 3
    assert place_of(messages, "bonn") == 2
    assert place_of(messages, "trains") == 2
    assert place_of(messages, "chap") is None
    assert place_of(messages, "...") is None
