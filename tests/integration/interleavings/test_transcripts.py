"""Two processes write one transcript: in every order of their packets, and with each answer lost.

In every order, the result is that of one write after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey

from .stage import Call, Process, Stage, finish_all, pauses

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables]

KEY = TranscriptKey("test", "project", "session")

CheckTables = Callable[[], None]


def noted(before: Any, items: Sequence[NewItem]) -> Any:
    return [*(before or []), *(item.content for item in items)]


class Stored(NamedTuple):
    """The contents of the items, and the state, which lists the contents that a fold has processed."""

    items: list[str]
    state: list[str] | None


def add(process: Process, *names: str, fold: bool = True) -> Call:
    items = [NewItem(name, name) for name in names]
    return process.begin("append", KEY, items, **({"fold": noted} if fold else {}))


WRITES: dict[str, Callable[[Process], Call]] = {
    "append": lambda process: add(process, "b", "shared"),
    "append without a fold": lambda process: add(process, "b", "shared", fold=False),
    "clear": lambda process: process.begin("clear", KEY),
    "delete": lambda process: process.begin("delete", KEY),
    "pop": lambda process: process.begin("pop", KEY),
    "replace the header": lambda process: process.begin("append", KEY, header=Header(["anew"])),
}


def stored(stage: Stage) -> Stored | None:
    found = stage.afresh("open", KEY, kind="transcripts")
    return None if found is None else Stored([item.content for item in found[1]], found[0].header.state)


def outcomes_in_turn(stage: Stage, one: Process, other: Process, name: str) -> list[Stored | None]:
    """Return the results of both writes, one after the other, in both orders."""
    turns = (lambda: add(one, "a", "shared"), lambda: WRITES[name](other))
    found = []
    for first, second in (turns, turns[::-1]):
        prepare(one)
        first().finish()
        second().finish()
        found.append(stored(stage))
    return found


def prepare(process: Process) -> None:
    process.delete(KEY)
    add(process, "first").finish()


@pytest.mark.parametrize("name", WRITES)
def test_an_append_beside_another_write_is_as_if_one_came_first(
    stage: Stage, check_tables: CheckTables, name: str
) -> None:
    one, other = stage.store("transcripts"), stage.store("transcripts")
    expected = outcomes_in_turn(stage, one, other, name)

    def begin() -> Call:
        prepare(one)
        return add(one, "a", "shared")

    for call in pauses(begin):
        meanwhile = WRITES[name](other).run()
        finish_all(call, meanwhile)
        assert stored(stage) in expected
        check_tables()
