"""Two processes write conversations that share entries: with each order of their packets, and each answer lost.

Of two writes to one record, one is refused. In every order, each history is complete, and no other entry remains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import ModelRequest, UserPromptPart
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord

from locus_mysql.engine.operation import Operation
from locus_mysql.integrations.pydantic_ai.conversations import ConversationOperations

from .stage import Call, Process, Stage, finish_all, pauses

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables]

CheckTables = Callable[[], None]


def entry(entry_id: str, parent_id: str | None) -> ConversationEntry:
    return ConversationEntry(
        id=entry_id, parent_id=parent_id, message=ModelRequest(parts=[UserPromptPart(content=entry_id)])
    )


def record(conversation_id: str, head_id: str, revision: str) -> ConversationRecord:
    return ConversationRecord(conversation_id=conversation_id, head_id=head_id, revision=revision)


class Client:
    """A process with conversations.

    Args:
        stage: The stage that controls its calls.
        process: The process that runs them.
    """

    def __init__(self, stage: Stage, process: Process) -> None:
        self._stage = stage
        self._host = process.store
        self.anew()

    def anew(self) -> None:
        """Empty the cache."""
        self.conversations = ConversationOperations(self._host.config)

    def begin(self, operation: Operation[Any]) -> Call:
        return self._stage.begin("conversations", self._host._run, (_attempt(operation),), {})

    def run(self, operation: Operation[Any]) -> Any:
        return self.begin(operation).finish()

    def write(self, new: ConversationRecord, *entries: ConversationEntry, expected: str | None) -> Operation[None]:
        return self.conversations.write_record(new, new_entries=entries, expected_revision=expected)

    def prepare(self) -> None:
        """Write conversation ``a`` with entries 1, 2 and 3, and its fork ``b`` at 2, with entry 4."""
        self.anew()
        for conversation_id in ("a", "b", "c"):
            found = self.run(self.conversations.read_record(conversation_id))
            if found is not None:
                self.run(self.conversations.delete_record(conversation_id, expected_revision=found.revision))
        first = (entry("1", None), entry("2", "1"), entry("3", "2"))
        self.run(self.write(record("a", "3", "a1"), *first, expected=None))
        self.run(self.write(record("b", "4", "b1"), entry("4", "2"), expected=None))


def _attempt(operation: Operation[Any]) -> Operation[Any]:
    try:
        return (yield from operation)
    except ConversationConflict:
        return "refused"


WRITES: dict[str, Callable[[Client], Operation[Any]]] = {
    "save": lambda client: client.write(record("a", "5", "a5"), entry("5", "3"), expected="a1"),
    "save of the fork": lambda client: client.write(record("b", "6", "b6"), entry("6", "4"), expected="b1"),
    "branch": lambda client: client.write(record("a", "1", "a7"), expected="a1"),
    "fork": lambda client: client.write(record("c", "3", "c1"), expected=None),
    "fork of the fork": lambda client: client.write(record("c", "8", "c8"), entry("8", "4"), expected=None),
    "delete": lambda client: client.conversations.delete_record("a", expected_revision="a1"),
    "delete of the fork": lambda client: client.conversations.delete_record("b", expected_revision="b1"),
}


def check(client: Client) -> dict[str, list[str]]:
    """Return the histories, read with an empty cache. A missing entry raises an error."""
    client.anew()
    histories = {}
    for conversation_id in ("a", "b", "c"):
        found = client.run(client.conversations.read_record(conversation_id))
        if found is not None:
            history = client.run(client.conversations.read_history(found.head_id))
            histories[conversation_id] = [one.id for one in history]
    return histories


def entries_left(client: Client) -> set[str]:
    left = set()
    for number in range(1, 9):
        found = client.run(client.conversations._transcripts.holding("pydantic-ai", str(number)))
        left |= {str(number)} if found else set()
    return left


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("other_name", ["delete", "save", "fork"])
def test_writes_of_two_processes_are_as_if_one_came_first(
    stage: Stage, check_tables: CheckTables, other_name: str, name: str
) -> None:
    one, other = (Client(stage, stage.store("transcripts")) for _ in range(2))
    expected = []
    for first, second in ((name, other_name), (other_name, name)):
        one.prepare()
        outcomes = {first: one.run(WRITES[first](one))}
        outcomes.setdefault(second, other.run(WRITES[second](other)))
        expected.append((check(one), entries_left(one)))
        other.anew()

    def begin() -> Call:
        one.prepare()
        return one.begin(WRITES[name](one))

    for call in pauses(begin):
        other.anew()
        meanwhile = other.begin(WRITES[other_name](other)).run()
        finish_all(call, meanwhile)
        assert (check(one), entries_left(one)) in expected
        check_tables()
