"""What checkpoints changed, in a few words."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.families.inspection.conversation import messages_of
from locus_mysql.families.inspection.records import Message
from locus_mysql.families.inspection.turn_notes import NOTE_CHARACTERS, changes_of, note_of


def message(**fields: Any) -> Message:
    return messages_of({"messages": [fields]})[0]


ANSWER = message(role="assistant", content="It is\n on its way.")
CALL = message(role="assistant", content="", tool_calls=[{"id": "1", "name": "find", "arguments": {}}])


@pytest.mark.parametrize(
    ("added", "last", "changes", "note"),
    [
        (1, ANSWER, [], "assistant: It is on its way."),
        (2, CALL, [], "+2 messages \u00b7 calls find"),
        (3, None, [], "+3 messages"),
        (1, None, ["approved true"], "+1 message \u00b7 approved true"),
        (0, None, ["a 1", "b 2", "c 3", "d 4", "e 5"], "a 1 \u00b7 b 2 \u00b7 c 3 \u00b7 2 more"),
        (0, None, [], ""),
    ],
)
def test_a_note_names_messages_then_fields(added: int, last: Message | None, changes: list[str], note: str) -> None:
    assert note_of(added, last, changes) == note


def test_changed_fields_are_named_with_short_values() -> None:
    before = {"a": 1, "b": "x", "gone": 1, "same": True, "items": []}
    after = {"a": 2, "b": "long " * 20, "new": {"k": 1}, "same": True, "items": [1], "updated_at": "now", "hidden": 3}
    changes = changes_of(before, after, frozenset({"hidden"}))
    assert changes == ["a 2", "b long long long long lon\u2026", "new", "no gone"]
    assert changes_of(None, after) == []


def test_a_note_is_short_whatever_was_saved() -> None:
    last = message(role="x" * 1_000, content="y" * 100_000)
    assert len(note_of(10**9, last, ["z" * 1_000] * 50)) <= NOTE_CHARACTERS
