"""The message of a thread that a search hit refers to."""

from __future__ import annotations

from locus_mysql.families.inspection.records import Message, ToolCall
from locus_mysql.server.pages.thread import conversation, index_of_match


def message(text: str, *calls: ToolCall) -> Message:
    return Message("user", text, None, calls, {})


def test_the_last_message_with_most_of_the_words_is_found() -> None:
    call = ToolCall("1", "look_up", {"city": "Bonn"}, "no trains", None)
    messages = conversation(
        [message("Chapter 20"), message("chapter 120"), message("", call), message("A chapter")], {}
    )

    assert index_of_match(messages, "chapter 20") == 0
    assert index_of_match(messages, "CHAPTER") == 3
    assert index_of_match(messages, "bonn") == 2
    assert index_of_match(messages, "trains") == 2
    assert index_of_match(messages, "chap") is None
    assert index_of_match(messages, "...") is None
