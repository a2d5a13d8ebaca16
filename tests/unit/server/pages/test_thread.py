"""Which message a search meant."""

from __future__ import annotations

from locus_mysql.inspection.records import Message, ToolCall
from locus_mysql.server.pages.thread import conversation, place_of


def message(text: str, *calls: ToolCall) -> Message:
    return Message("user", text, None, calls, {})


def test_the_message_with_most_of_the_words_is_meant_and_of_several_the_last() -> None:
    call = ToolCall("1", "look_up", {"city": "Bonn"}, "no trains", None)
    said = conversation([message("Chapter 20"), message("chapter 120"), message("", call), message("A chapter")], {})

    assert place_of(said, "chapter 20") == 0
    assert place_of(said, "CHAPTER") == 3
    assert place_of(said, "bonn") == 2
    assert place_of(said, "trains") == 2
    assert place_of(said, "chap") is None
    assert place_of(said, "...") is None
