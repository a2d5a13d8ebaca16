"""Calls that the primary answers after another call has begun an outage: the fallback learns what came of them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from locus_mysql.errors import Unavailable
from locus_mysql.families.working.calls import (
    Append,
    Call,
    ClearNotes,
    Command,
    End,
    Increment,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    Write,
    WriteTask,
)
from locus_mysql.working import FallbackStorage

from .frail import HERE, Frail, call, variable
from .test_fallback import values

DEADLINE_S = 60.0


class Slow(Frail):
    """Carries out a call named ``slow`` at once, and answers it when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.carried_out, self.answers = threading.Event(), threading.Event()

    def execute_blocking(self, call: Call) -> Reply:
        if call.name != "slow":
            return super().execute_blocking(call)
        reply = self.kept.execute_blocking(call)
        self.carried_out.set()
        assert self.answers.wait(DEADLINE_S)
        return reply

    async def execute(self, call: Call) -> Reply:
        return await asyncio.to_thread(self.execute_blocking, call)


class Late:
    """A storage whose primary is slow, with one side."""

    def __init__(self, *, awaited: bool) -> None:
        self.awaited = awaited
        self.primary = Slow()
        self.storage = FallbackStorage(self.primary, timeout_s=DEADLINE_S, first_retry_s=3_600, longest_retry_s=3_600)

    def ask(self, *commands: Command[Any], name: str = "test") -> tuple[Any, ...]:
        asked = Call(name, HERE, commands, token=call().token)
        if self.awaited:
            return asyncio.run(self.storage.execute(asked)).results
        return self.storage.execute_blocking(asked).results

    def late(self, *commands: Command[Any], meanwhile: tuple[Command[Any], ...] = ()) -> None:
        """Make a call that is answered when another one has begun an outage, and more was written in that."""
        errors: list[BaseException] = []

        def slow() -> None:
            try:
                self.ask(*commands, name="slow")
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=slow)
        thread.start()
        assert self.primary.carried_out.wait(DEADLINE_S)
        self.primary.away = True
        self.ask(ReadAll())
        if meanwhile:
            self.ask(*meanwhile)
        assert self.storage.degraded
        self.primary.answers.set()
        thread.join(DEADLINE_S)
        assert (thread.is_alive(), errors) == (False, [])

    def back(self) -> None:
        """The primary is back, and what waited is written to it."""
        self.primary.away = False
        assert (asyncio.run(self.storage.flush()) if self.awaited else self.storage.flush_blocking()) == 0


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def one(request: pytest.FixtureRequest) -> Late:
    late = Late(awaited=request.param)
    late.ask(Write((variable("a", 1), variable("gone", 1), variable("n", 1))), Append(b"1"), WriteTask(b"1"))
    return late


def test_what_is_answered_late_is_seen_in_the_outage(one: Late) -> None:
    one.late(Write((variable("a", 2),)), Remove(("gone",)), Append(b"2"), WriteTask(b"2"))
    assert values(one.ask(ReadAll())[0]) == {"a": b"2", "n": b"1"}
    assert one.ask(ReadNotes(), ReadTask()) == ([b"1", b"2"], b"2")
    one.back()
    assert values(one.ask(ReadAll())[0]) == {"a": b"2", "n": b"1"}
    assert one.ask(ReadNotes(), ReadTask()) == ([b"1", b"2"], b"2")
    assert one.storage.condition(HERE).lost == ()


def test_what_was_written_since_stays(one: Late) -> None:
    later = (Write((variable("a", 3), variable("gone", 3))), Append(b"3"), WriteTask(b"3"))
    one.late(Write((variable("a", 2), variable("b", 2))), Remove(("gone",)), WriteTask(b"2"), meanwhile=later)
    assert values(one.ask(ReadAll())[0]) == {"a": b"3", "b": b"2", "gone": b"3", "n": b"1"}
    assert one.ask(ReadTask()) == (b"3",)
    one.back()
    assert values(one.ask(ReadAll())[0]) == {"a": b"3", "b": b"2", "gone": b"3", "n": b"1"}
    assert one.ask(ReadNotes(), ReadTask()) == ([b"1", b"3"], b"3")
    assert one.storage.condition(HERE).lost == ()


@pytest.mark.parametrize("later", [(), (Append(b"2"),)], ids=["nothing since", "a note since"])
def test_notes_that_were_cleared_late_are_gone_but_for_later_ones(one: Late, later: tuple[Command[Any], ...]) -> None:
    one.late(ClearNotes(), meanwhile=later)
    if not later:
        assert one.ask(ReadNotes()) == ([],)
    one.back()
    assert one.ask(ReadNotes()) == ([command.note for command in later if isinstance(command, Append)],)


def test_a_session_that_was_ended_late_is_gone(one: Late) -> None:
    one.late(End())
    assert one.ask(ReadAll(), ReadNotes(), ReadTask()) == ({}, [], None)
    one.back()
    assert one.ask(ReadAll(), ReadNotes(), ReadTask()) == ({}, [], None)


def test_sums_are_right_when_an_increment_is_answered_late(one: Late) -> None:
    one.late(Increment("n", 1), meanwhile=(Increment("n", 10),))
    one.back()
    assert values(one.ask(Read(("n",)))[0]) == {"n": b"12"}


def test_answers_that_overtake_each_other_leave_what_is_newest(one: Late) -> None:
    """Of two calls in flight at once, the one that was carried out first is answered last."""
    thread = threading.Thread(
        target=lambda: one.ask(Write((variable("a", 2),)), Remove(("gone",)), WriteTask(b"2"), name="slow")
    )
    thread.start()
    assert one.primary.carried_out.wait(DEADLINE_S)
    one.ask(Write((variable("a", 3), variable("gone", 3))), WriteTask(b"3"))
    one.primary.answers.set()
    thread.join(DEADLINE_S)
    one.primary.away = True
    assert values(one.ask(ReadAll())[0]) == {"a": b"3", "gone": b"3", "n": b"1"}
    assert one.ask(ReadTask()) == (b"3",)


def test_a_flush_ends_when_the_primary_goes_again(one: Late) -> None:
    one.primary.away = True
    one.ask(Append(b"2"))
    one.primary.away, one.primary.mute = False, lambda: True
    waiting = asyncio.run(one.storage.flush()) if one.awaited else one.storage.flush_blocking()
    assert waiting > 0
    assert one.storage.degraded
    with pytest.raises(Unavailable):
        one.primary.execute_blocking(call(Append(b"x"), address=HERE._replace(session_id="other")))
    one.primary.mute = lambda: False
    one.back()
    assert one.ask(ReadNotes()) == ([b"1", b"2"],)
