"""Calls of two processes on the same threads, with packets and answers in any order or lost, compared with a model.

Some order in which each call took effect once, between its beginning and its end, must explain all results. Whenever
a call ends, a new process must load a state that such an order leaves. At the end, the tables must be sound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from locus_mysql import NO_CHECKPOINT
from locus_mysql.errors import Conflict, ThreadExists

from ...thoroughness import FULL
from . import model
from .model import Saved, Worlds
from .stage import DEADLINE_S, Call, Process, Stage

State = dict[str, Any]

#: The same examples in every run.
SETTINGS = settings(
    settings.get_profile("server"),
    max_examples=400 if FULL else 30,
    stateful_step_count=40,
    derandomize=True,
    report_multiple_bugs=False,
)

#: More concurrent calls have too many orders to check quickly; broken connections take time.
CALLS_AT_ONCE = 3
LOSSES = 3

PROCESSES = st.sampled_from([0, 0, 1])
#: Mostly one thread, so that calls conflict.
THREADS = st.sampled_from(["t", "t", "t", "u"])
WHICH = st.integers(0, 3)
#: Events before the answer to a load arrives; after most of them, a save cannot build on the loaded state.
WHILE_LOADED = (
    ("load",),
    ("save",),
    ("delete it",),
    ("delete all",),
    ("delete it", "load"),
    ("replace it", "load"),
    ("delete all", "save"),
    ("save", "delete it"),
)
#: Events before a write whose answer was lost is retried. After most of them, a second execution would undo a save.
WHILE_LOST = (
    ("load",),
    ("delete all",),
    ("delete all", "save"),
    ("delete it", "save"),
    ("replace it",),
    ("replace it", "save"),
    ("save", "delete it"),
    ("save", "save", "save"),
)
MOSTLY = st.sampled_from([True, True, True, False])
SELDOM = st.sampled_from([False, False, False, True])


def only_if(condition: Callable[[Any], object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a rule that does nothing unless a condition holds, or another rule calls it.

    With a precondition, Hypothesis would choose rules by the state, and reject one that depends on the server's speed.
    """

    def decorate(step: Callable[..., None]) -> Callable[..., None]:
        @wraps(step)
        def checked(self: Any, *args: Any, **drawn: Any) -> None:
            if self.in_rule:
                step(self, *args, **drawn)
            elif condition(self):
                self.in_rule = True
                step(self, *args, **drawn)
                self.in_rule = False

        return checked

    return decorate


@dataclass
class OnItsWay:
    """A call in progress.

    Args:
        call: The call.
        numbers: The numbers of its effects in the model.
        thread_id: The thread to check when it ends.
        understand: Converts the call's result to that of the model's call.
    """

    call: Call
    numbers: list[int]
    thread_id: str
    understand: Callable[[Any], Any]


class AnyOrder(RuleBasedStateMachine):
    """Two processes and their calls."""

    stage: ClassVar[Stage]
    empty_tables: ClassVar[Callable[[], None]]
    check_tables: ClassVar[Callable[[], None]]

    @initialize(
        pipeline=st.booleans(), keep=st.sampled_from([None, None, 1, 2]), cache_bytes=st.sampled_from([1_000_000, 0])
    )
    def begin(self, pipeline: bool, keep: int | None, cache_bytes: int) -> None:
        self.sound, self.in_rule = True, False
        type(self).empty_tables()
        self.keep, self.pipeline = keep, pipeline
        options = {"pipeline": pipeline, "keep_checkpoints": keep, "cache_bytes": cache_bytes}
        self.processes = [self.stage.store(**options) for _ in range(2)]
        self.worlds = Worlds()
        self.on_their_way: list[OnItsWay] = []
        self.states: list[State] = []
        self.seen: dict[tuple[int, str], int | None] = {}  # the number of the state that each process saw last
        self.ids: dict[object, str] = {"a": "a", "b": "b"}  # from the model's checkpoint ids to the store's
        self.losses = 0

    # Calls that begin; some run to their end at once

    @rule(
        process=PROCESSES,
        thread_id=THREADS,
        name=st.sampled_from([None, None, "a", "b"]),
        onto=st.sampled_from(["nothing", "what it saw last", "the newest"]),
        at_once=MOSTLY,
        expects=st.sampled_from([None, None, "nothing", "one"]),
        which=WHICH,
    )
    @only_if(lambda self: len(self.on_their_way) < CALLS_AT_ONCE)
    def save(
        self,
        process: int,
        thread_id: str,
        name: str | None,
        onto: str,
        at_once: bool,
        expects: str | None = None,
        which: int = 0,
    ) -> None:
        """Save a new conversation, or continue another one like an agent that may not have loaded the latest state."""
        number = len(self.states)
        before = {"what it saw last": self.seen.get((process, thread_id)), "the newest": number - 1}.get(onto)
        earlier = [] if before is None or before < 0 else self.states[before]["said"]
        state = {"number": number, "said": [*earlier, f"{number} " * (100 if earlier else 1_500)]}
        self.states.append(state)
        called = ("save", number) if name is None else name

        def understand(checkpoint_id: str) -> bool:
            self.ids[called] = checkpoint_id
            self.seen[process, thread_id] = number
            return name in (None, checkpoint_id)

        options: dict[str, Any] = {}
        if expects == "nothing":
            options["expected"] = NO_CHECKPOINT
        elif expects == "one":
            there = sorted(self._names_there(thread_id), key=repr) or ["a"]
            expects = there[-1 - which % len(there)]  # type: ignore[assignment]  # any name
            options["expected"] = self.ids[expects]
        effect = model.save(thread_id, Saved(called, number), self.keep, expects)
        self._begin(process, thread_id, at_once, [effect], understand, "save", thread_id, state, name, **options)

    @rule(process=PROCESSES, thread_id=THREADS, which=st.none() | WHICH, at_once=SELDOM)
    @only_if(lambda self: len(self.on_their_way) < CALLS_AT_ONCE)
    def load(self, process: int, thread_id: str, which: int | None, at_once: bool) -> None:
        name, arguments = self._named(thread_id, which)

        def understand(state: State | None) -> int | None:
            self.seen[process, thread_id] = number = self._number_of(state)
            return number

        effect = model.load(thread_id, name)
        self._begin(process, thread_id, at_once, [effect], understand, "load", *arguments)

    @rule(process=PROCESSES, thread_id=THREADS, which=WHICH | st.none(), at_once=MOSTLY)
    @only_if(lambda self: len(self.on_their_way) < CALLS_AT_ONCE)
    def delete(self, process: int, thread_id: str, which: int | None, at_once: bool) -> None:
        """Delete a checkpoint, or occasionally the thread."""
        name, arguments = self._named(thread_id, which)
        effect = model.delete(thread_id, name)
        self._begin(process, thread_id, at_once, [effect], bool, "delete", *arguments)

    @rule(process=PROCESSES, what=st.sampled_from(["copy t u", "copy u t", "vacuum", "forget"]), at_once=SELDOM)
    @only_if(lambda self: len(self.on_their_way) < CALLS_AT_ONCE)
    def work_on_all(self, process: int, what: str, at_once: bool) -> None:
        """Copy one thread to the other, or remove all threads one by one."""
        command, *threads = what.split()
        if command == "copy":
            effects = [model.copy(*threads)]
            self._begin(process, threads[1], at_once, effects, lambda made: made, "copy_thread", *threads)
            return
        effects = [model.may_remove("t"), model.may_remove("u")]
        if (
            command == "forget"
        ):  # repeats until there is none, so a thread that was created meanwhile may be removed as well
            effects *= 2
        method = ("vacuum", 0) if command == "vacuum" else ("forget_tenant",)
        self._begin(process, "t", at_once, effects, lambda _: None, *method)

    @rule(
        process=PROCESSES,
        thread_id=THREADS,
        which=st.none() | WHICH,
        by=PROCESSES,
        meanwhile=st.sampled_from(WHILE_LOADED),
    )
    @only_if(lambda self: len(self.on_their_way) < CALLS_AT_ONCE)
    def turn(self, process: int, thread_id: str, which: int | None, by: int, meanwhile: tuple[str, ...]) -> None:
        """Delay the answer to a load until other events have happened, and save a continuation of the loaded state."""
        name, _ = self._named(thread_id, which)
        self.load(process, thread_id, which, at_once=False)
        with self._acting():
            loading = self.on_their_way[-1].call.carry_out()
        for what in meanwhile:
            if what in ("delete it", "delete all"):
                self.delete(by, thread_id, which if what == "delete it" else None, at_once=True)
            elif what in ("replace it", "save"):
                same = name if what == "replace it" and isinstance(name, str) else None
                self.save(by, thread_id, same, "nothing", at_once=True)
            else:
                self.load(process, thread_id, None, at_once=True)
        with self._acting():
            loading.run()
            self._look_at_what_ended()
        self.save(process, thread_id, None, "what it saw last", at_once=True)

    @rule(
        process=PROCESSES,
        thread_id=THREADS,
        what=st.sampled_from(["save", "save", "delete it", "delete all"]),
        name=st.sampled_from([None, "a", "b"]),
        packets=st.integers(0, 12),
        by=PROCESSES,
        meanwhile=st.sampled_from(WHILE_LOST),
    )
    @only_if(lambda self: len(self.on_their_way) < CALLS_AT_ONCE and self.losses < LOSSES)
    def lose_an_answer(
        self,
        process: int,
        thread_id: str,
        what: str,
        name: str | None,
        packets: int,
        by: int,
        meanwhile: tuple[str, ...],
    ) -> None:
        """Lose the answer to a write, let other events happen before it is retried, and check its result."""
        if what == "save":
            self.save(process, thread_id, name, "the newest", at_once=False)
        else:
            self.delete(process, thread_id, 0 if what == "delete it" else None, at_once=False)
        writing = self.on_their_way[-1].call
        with self._acting():
            for _ in range(0 if self.pipeline else packets):
                if writing.state == "asks":
                    writing.step()
            if writing.state == "asks" and writing.carry_out().state == "answered":
                writing.lose_answer()
                self.losses += 1
            self._look_at_what_ended()
        for other in meanwhile:
            if other == "load":
                self.load(by, thread_id, None, at_once=True)
            elif other.startswith("delete"):
                self.delete(by, thread_id, 0 if other == "delete it" else None, at_once=True)
            else:
                self.save(by, thread_id, name if other == "replace it" else None, "the newest", at_once=True)
        with self._acting():
            writing.run()
            self._look_at_what_ended()

    # Calls that continue

    @rule(which=WHICH, times=st.integers(1, 3))
    @only_if(lambda self: self.on_their_way)
    def go_on(self, which: int, times: int) -> None:
        """Carry out a packet, or deliver its answer."""
        with self._acting():
            call = self._chosen(which).call
            for _ in range(times):
                if call.state == "asks":
                    call.carry_out()
                elif call.state == "answered":
                    call.deliver()
            self._look_at_what_ended()

    @rule(which=WHICH)
    @only_if(lambda self: self.on_their_way)
    def go_on_to_the_end(self, which: int) -> None:
        with self._acting():
            self._chosen(which).call.run()
            self._look_at_what_ended()

    @rule(which=WHICH, carried_out=st.booleans())
    @only_if(lambda self: self.on_their_way and self.losses < LOSSES)
    def lose(self, which: int, carried_out: bool) -> None:
        """Break the connection before or after the server carries out the packet."""
        with self._acting():
            call = self._chosen(which).call
            if call.state == "asks" and not carried_out:
                call.lose_request()
            elif call.state == "answered" or (call.state == "asks" and call.carry_out().state == "answered"):
                call.lose_answer()
            self.losses += 1
            self._look_at_what_ended()

    def teardown(self) -> None:
        try:
            if getattr(self, "sound", False):
                self._end_all()
                for thread_id in ("t", "u"):
                    for process in (*self.processes, None):
                        self._look(process, thread_id)
                type(self).check_tables()
        finally:
            self.stage.clear()

    # Details

    def _begin(
        self,
        process: int,
        thread_id: str,
        at_once: bool,
        effects: list[model.Effect],
        understand: Callable[[Any], Any],
        method: str,
        *arguments: Any,
        **options: Any,
    ) -> None:
        with self._acting():
            numbers = [self.worlds.begin(effect) for effect in effects]
            call = self.processes[process].begin(method, *arguments, **options)
            self.on_their_way.append(OnItsWay(call, numbers, thread_id, understand))
            if at_once:
                call.run()
            self._look_at_what_ended()

    def _look_at_what_ended(self) -> None:
        ended = [one for one in self.on_their_way if one.call.done]
        self.on_their_way = [one for one in self.on_their_way if not one.call.done]
        for one in ended:
            try:
                returned = one.understand(one.call.finish())
            except ThreadExists:
                returned = "exists"
            except Conflict:
                returned = "conflict"
            for number in one.numbers:
                expected = self.worlds.expected(number)
                assert self.worlds.end(number, returned), f"{one.call} returned {returned}, not one of {expected}"
            self._look(None, one.thread_id)

    def _look(self, process: Process | None, thread_id: str) -> None:
        """Check that this process and a new one load a state that some order of the calls leaves."""
        for name in (None, *sorted(self._names_there(thread_id), key=repr)):
            number = self.worlds.begin(model.load(thread_id, name))
            load = process.load if process else partial(self.stage.afresh, "load")
            found = self._number_of(load(thread_id, *([] if name is None else [self.ids[name]])))
            expected = self.worlds.expected(number)
            assert self.worlds.end(number, found), (
                f"{name or 'newest'} of {thread_id!r}: {found}, not one of {expected}"
            )

    def _number_of(self, state: State | None) -> int | None:
        """Return the number of a saved state, and check that the state is unchanged."""
        if state is None:
            return None
        number: int = state["number"]
        assert state == self.states[number]
        return number

    def _named(self, thread_id: str, which: int | None) -> tuple[object, tuple[str, ...]]:
        """Return a checkpoint's name in the model, and a store's arguments for it; it mostly exists."""
        if which is None:
            return None, (thread_id,)
        known = sorted(self._names_there(thread_id), key=repr) or ["a"]
        name = known[which % len(known)]
        return name, (thread_id, self.ids[name])

    def _names_there(self, thread_id: str) -> set[object]:
        """Return the names of the thread's possible checkpoints, without those whose id is not known yet."""
        there = {saved.name for threads in self.worlds.threads() for saved in dict(threads).get(thread_id, ())}
        return there & self.ids.keys()

    def _chosen(self, which: int) -> OnItsWay:
        return self.on_their_way[which % len(self.on_their_way)]

    def _end_all(self) -> None:
        """Run all calls to their end. OceanBase may report that a call waits when it has just got the lock."""
        end = time.monotonic() + DEADLINE_S
        while self.on_their_way:
            calls = [one.call for one in self.on_their_way]
            if all(call.waits for call in calls):
                assert time.monotonic() < end, f"{calls}: they wait for each other"
                calls[0].look()
            for call in calls:
                call.run()
            self._look_at_what_ended()

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """Skip the final checks if the block raises an error."""
        self.sound = False
        yield
        self.sound = True


@pytest.mark.slow
def test_calls_in_any_order_take_effect_as_if_one_by_one(
    stage: Stage, check_tables: Callable[[], None], run_sql: Callable[..., Any], database: str
) -> None:
    class Machine(AnyOrder):
        """The machine for this test's schema."""

    def empty_tables() -> None:
        for (table,) in run_sql(f"SHOW TABLES FROM {database}"):
            run_sql(f"DELETE FROM {database}.{table}")

    Machine.stage, Machine.empty_tables, Machine.check_tables = stage, empty_tables, check_tables
    run_state_machine_as_test(Machine, settings=SETTINGS)
