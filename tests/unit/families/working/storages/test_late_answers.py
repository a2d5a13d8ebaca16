"""The fallback receives the results of calls that the primary answers after an outage has begun."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from locus_mysql.errors import Unavailable
from locus_mysql.families.working import calls
from locus_mysql.working import FallbackStorage

from .frail import HERE, Frail, call, values, variable

DEADLINE_S = 60.0


class Slow(Frail):
    """Carries out a call named ``slow`` at once, and answers it on a signal."""

    def __init__(self) -> None:
        super().__init__()
        self.carried_out, self.answers = threading.Event(), threading.Event()

    def execute_blocking(self, call: calls.Call) -> calls.Reply:
        if call.name != "slow":
            return super().execute_blocking(call)
        reply = self.kept.execute_blocking(call)
        self.carried_out.set()
        assert self.answers.wait(DEADLINE_S)
        return reply

    async def execute(self, call: calls.Call) -> calls.Reply:
        return await asyncio.to_thread(self.execute_blocking, call)


class Late:
    """One side of a storage with a slow primary."""

    def __init__(self, *, awaited: bool) -> None:
        self.awaited = awaited
        self.primary = Slow()
        self.storage = FallbackStorage(self.primary, timeout_s=DEADLINE_S, first_retry_s=3_600, longest_retry_s=3_600)

    def ask(self, *commands: calls.Command[Any], name: str = "test") -> tuple[Any, ...]:
        asked = calls.Call(name, HERE, commands, token=call().token)
        if self.awaited:
            return asyncio.run(self.storage.execute(asked)).results
        return self.storage.execute_blocking(asked).results

    def late(self, *commands: calls.Command[Any], meanwhile: tuple[calls.Command[Any], ...] = ()) -> None:
        """Make a call whose answer arrives in an outage that another call began, after further writes."""
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
        self.ask(calls.ReadAll())
        if meanwhile:
            self.ask(*meanwhile)
        assert self.storage.degraded
        self.primary.answers.set()
        thread.join(DEADLINE_S)
        assert (thread.is_alive(), errors) == (False, [])

    def back(self) -> None:
        """End the outage, and write the queued calls to the primary."""
        self.primary.away = False
        assert (asyncio.run(self.storage.flush()) if self.awaited else self.storage.flush_blocking()) == 0


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def one(request: pytest.FixtureRequest) -> Late:
    late = Late(awaited=request.param)
    late.ask(
        calls.Write((variable("a", 1), variable("gone", 1), variable("n", 1))),
        calls.Append(b"1"),
        calls.WriteTask(b"1"),
    )
    return late


def test_a_late_answer_is_visible_in_the_outage(one: Late) -> None:
    one.late(calls.Write((variable("a", 2),)), calls.Remove(("gone",)), calls.Append(b"2"), calls.WriteTask(b"2"))
    assert values(one.ask(calls.ReadAll())[0]) == {"a": b"2", "n": b"1"}
    assert one.ask(calls.ReadNotes(), calls.ReadTask()) == ([b"1", b"2"], b"2")
    one.back()
    assert values(one.ask(calls.ReadAll())[0]) == {"a": b"2", "n": b"1"}
    assert one.ask(calls.ReadNotes(), calls.ReadTask()) == ([b"1", b"2"], b"2")
    assert one.storage.condition(HERE).lost == ()


def test_writes_after_a_late_call_are_kept(one: Late) -> None:
    later = (calls.Write((variable("a", 3), variable("gone", 3))), calls.Append(b"3"), calls.WriteTask(b"3"))
    one.late(
        calls.Write((variable("a", 2), variable("b", 2))),
        calls.Remove(("gone",)),
        calls.WriteTask(b"2"),
        meanwhile=later,
    )
    assert values(one.ask(calls.ReadAll())[0]) == {"a": b"3", "b": b"2", "gone": b"3", "n": b"1"}
    assert one.ask(calls.ReadTask()) == (b"3",)
    one.back()
    assert values(one.ask(calls.ReadAll())[0]) == {"a": b"3", "b": b"2", "gone": b"3", "n": b"1"}
    assert one.ask(calls.ReadNotes(), calls.ReadTask()) == ([b"1", b"3"], b"3")
    assert one.storage.condition(HERE).lost == ()


@pytest.mark.parametrize("later", [(), (calls.Append(b"2"),)], ids=["nothing since", "a note since"])
def test_notes_that_were_cleared_late_are_gone_but_for_later_ones(
    one: Late, later: tuple[calls.Command[Any], ...]
) -> None:
    one.late(calls.ClearNotes(), meanwhile=later)
    if not later:
        assert one.ask(calls.ReadNotes()) == ([],)
    one.back()
    assert one.ask(calls.ReadNotes()) == ([command.note for command in later if isinstance(command, calls.Append)],)


def test_a_session_that_was_ended_late_is_gone(one: Late) -> None:
    one.late(calls.End())
    assert one.ask(calls.ReadAll(), calls.ReadNotes(), calls.ReadTask()) == ({}, [], None)
    one.back()
    assert one.ask(calls.ReadAll(), calls.ReadNotes(), calls.ReadTask()) == ({}, [], None)


def test_sums_are_right_when_an_increment_is_answered_late(one: Late) -> None:
    one.late(calls.Increment("n", 1), meanwhile=(calls.Increment("n", 10),))
    one.back()
    assert values(one.ask(calls.Read(("n",)))[0]) == {"n": b"12"}


def test_the_newest_write_wins_when_answers_overtake_each_other(one: Late) -> None:
    """Two calls are in flight; the one carried out first is answered last."""
    thread = threading.Thread(
        target=lambda: one.ask(
            calls.Write((variable("a", 2),)), calls.Remove(("gone",)), calls.WriteTask(b"2"), name="slow"
        )
    )
    thread.start()
    assert one.primary.carried_out.wait(DEADLINE_S)
    one.ask(calls.Write((variable("a", 3), variable("gone", 3))), calls.WriteTask(b"3"))
    one.primary.answers.set()
    thread.join(DEADLINE_S)
    one.primary.away = True
    assert values(one.ask(calls.ReadAll())[0]) == {"a": b"3", "gone": b"3", "n": b"1"}
    assert one.ask(calls.ReadTask()) == (b"3",)


def test_a_flush_ends_when_the_primary_goes_again(one: Late) -> None:
    one.primary.away = True
    one.ask(calls.Append(b"2"))
    one.primary.away, one.primary.mute = False, lambda: True
    waiting = asyncio.run(one.storage.flush()) if one.awaited else one.storage.flush_blocking()
    assert waiting > 0
    assert one.storage.degraded
    with pytest.raises(Unavailable):
        one.primary.execute_blocking(call(calls.Append(b"x"), address=HERE._replace(session_id="other")))
    one.primary.mute = lambda: False
    one.back()
    assert one.ask(calls.ReadNotes()) == ([b"1", b"2"],)
