"""Two processes write to a session during repeated outages: no acknowledged write is lost or doubled."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from locus_mysql.errors import Unavailable
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.fallback import FallbackStorage
from locus_mysql.families.working.storages.in_memory import InMemoryStorage

from .frail import HERE, Frail, call, variable

PROCESSES = st.integers(0, 1)
KEYS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.sampled_from(["m", "n"])


class Outages(RuleBasedStateMachine):
    """Each write has a unique value, so that the final value identifies its write."""

    @initialize(awaited=st.booleans())
    def begin(self, awaited: bool) -> None:
        self.awaited = awaited
        self.kept = InMemoryStorage()
        self.primaries = [Frail(self.kept), Frail(self.kept)]
        self.lost: list[tuple[int, str]] = []
        self.storages = [self.storage(0), self.storage(1)]
        self.values = iter(range(1_000, 10_000_000))
        #: The acknowledged writes of each key in order: process and value; None is a deletion.
        self.written: dict[str, list[tuple[int, bytes | None]]] = {}
        self.perhaps_removed: set[str] = set()
        self.perhaps_written: dict[str, set[bytes]] = {}
        self.tasks: list[tuple[int, bytes]] = []
        self.notes: list[list[bytes]] = [[], []]
        self.sums: Counter[str] = Counter()

    def storage(self, process: int) -> FallbackStorage:
        return FallbackStorage(
            self.primaries[process],
            timeout_s=60,
            first_retry_s=1e-9,
            longest_retry_s=1e-9,
            on_lost=lambda address, texts: self.lost.extend((process, text) for text in texts),
        )

    def ask(self, process: int, *commands: calls.Command[Any]) -> calls.Reply:
        asked: calls.Call = call(*commands)
        storage = self.storages[process]
        if self.awaited:
            return asyncio.run(storage.execute(asked))
        return storage.execute_blocking(asked)

    @rule(process=PROCESSES, answers_lost=st.lists(st.booleans(), max_size=4))
    def goes(self, process: int, answers_lost: list[bool]) -> None:
        primary = self.primaries[process]
        primary.away = True
        primary.loses = lambda: answers_lost.pop() if answers_lost else False

    @rule(process=PROCESSES)
    def comes(self, process: int) -> None:
        self.primaries[process].away = False
        self.primaries[process].mute = lambda: False

    @rule(process=PROCESSES, answers=st.lists(st.booleans(), max_size=6))
    def answers_some_writes(self, process: int, answers: list[bool]) -> None:
        self.primaries[process].away = False
        self.primaries[process].mute = lambda: not (answers.pop() if answers else False)

    @rule(process=PROCESSES, key=KEYS)
    def sets(self, process: int, key: str) -> None:
        value = str(next(self.values))
        self.ask(process, calls.Write((variable(key, value),)))
        self.written.setdefault(key, []).append((process, value.encode()))

    @rule(process=PROCESSES, key=KEYS)
    def removes(self, process: int, key: str) -> None:
        removed = self.ask(process, calls.Remove((key,))).results[0]
        if removed:
            self.written.setdefault(key, []).append((process, None))
        if not removed or self.storages[process].condition(HERE).degraded:
            # Deleting a variable that the primary never had leaves no newer version there.
            self.perhaps_removed.add(key)

    @rule(process=PROCESSES, key=KEYS)
    def compares(self, process: int, key: str) -> None:
        found = self.ask(process, calls.Read((key,))).results[0]
        value = str(next(self.values))
        expected = found[key].value if key in found else None  # type: ignore[index,operator]
        try:
            held = self.ask(process, calls.CompareAndSet(variable(key, value), expected)).results[0]
        except Unavailable:  # the primary may have carried it out, though it does not hold here
            self.perhaps_written.setdefault(key, set()).add(value.encode())
            return
        if held:
            self.written.setdefault(key, []).append((process, value.encode()))

    @rule(process=PROCESSES, key=NUMBERS, by=st.integers(-5, 5))
    def increments(self, process: int, key: str, by: int) -> None:
        self.ask(process, calls.Increment(key, by))
        self.sums[key] += by

    @rule(process=PROCESSES)
    def notes_something(self, process: int) -> None:
        note = f"[{process},{next(self.values)}]".encode()
        self.ask(process, calls.Append(note))
        self.notes[process].append(note)

    @rule(process=PROCESSES)
    def writes_the_task(self, process: int) -> None:
        value = str(next(self.values)).encode()
        self.ask(process, calls.WriteTask(value))
        self.tasks.append((process, value))

    @rule(process=PROCESSES)
    def keeps_a_checkpoint(self, process: int) -> None:
        self.ask(process, calls.CreateCheckpoint(str(next(self.values))))

    @rule(process=PROCESSES)
    def reads(self, process: int) -> None:
        self.ask(process, calls.ReadAll(), calls.ReadNotes(), calls.ReadTask())

    @rule(process=PROCESSES, key=KEYS)
    def sees_what_it_wrote_last(self, process: int, key: str) -> None:
        """Check own writes while only this process writes; after an outage the other may have written."""
        value = str(next(self.values))
        self.ask(process, calls.Write((variable(key, value),)))
        self.written.setdefault(key, []).append((process, value.encode()))
        before = self.storages[process].condition(HERE)
        found = self.ask(process, calls.Read((key,))).results[0]
        if self.storages[process].condition(HERE).lost == before.lost:
            assert found[key].value == value.encode()  # type: ignore[index]

    def teardown(self) -> None:
        if not hasattr(self, "storages"):
            return
        for process in (0, 1):
            self.comes(process)
            waiting = (
                asyncio.run(self.storages[process].flush()) if self.awaited else self.storages[process].flush_blocking()
            )
            assert waiting == 0
            assert self.storages[process].condition(HERE).pending == 0
        found = self.kept.execute_blocking(call(calls.ReadAll(), calls.ReadNotes(), calls.ReadTask())).results
        variables, notes, task = found
        self.check_notes(notes)  # type: ignore[arg-type]
        for key in ("m", "n"):
            there = variables[key].value if key in variables else b"0"  # type: ignore[index,operator]
            assert int(there) == self.sums[key], f"{key} is {there!r}, not {self.sums[key]}"
        for key, written in self.written.items():
            there = variables[key].value if key in variables else None  # type: ignore[index,operator]
            if there in self.perhaps_written.get(key, ()):
                continue
            if key in self.perhaps_removed:
                last = dict(written)
                written = [(process, value) for process, value in written if last[process] is not None]
                if there is None or not written:
                    continue
            self.check_last(f"variable {key!r}:", written, there)
        if self.tasks:
            self.check_last("the task's state:", self.tasks, task)  # type: ignore[arg-type]

    def check_notes(self, notes: list[bytes]) -> None:
        for process in (0, 1):
            mine = [note for note in notes if note.startswith(f"[{process},".encode())]
            assert mine == self.notes[process]

    def check_last(self, name: str, written: list[tuple[int, bytes | None]], there: bytes | None) -> None:
        """The final value is the last write of one process; the other's came before or is reported as lost."""
        last = dict(written)
        assert there in last.values(), f"{name} is {there!r}, which is not the last that either wrote: {last}"
        for process, value in last.items():
            if value != there:
                newest = written[-1][0] == process
                reported = any(who == process and text.startswith(name) for who, text in self.lost)
                assert reported or not newest, f"{name} {value!r} of process {process} was lost and not reported"


Outages.TestCase.settings = settings(settings.get_profile("server"))
TestOutages = Outages.TestCase
