"""Random calls of two processes on one session, with lost answers and a movable clock, compared with a model."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from locus_mysql.errors import LocusMySQLError
from locus_mysql.families.working import operations
from locus_mysql.families.working.storages import redis_operations
from locus_mysql.families.working.storages.interface import Storage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.families.working.storages.optimistic import Clock as ServerClock
from locus_mysql.families.working.storages.optimistic import KnownSessions
from locus_mysql.families.working.storages.redis import RedisStorage
from locus_mysql.working import (
    MISSING,
    InMemoryStorage,
    SyncWorkingMemory,
    TaskState,
    WorkingMemory,
)

from ...conftest import MakeConfig
from ...connecting import connect
from ...proxy import WireProxy
from .reference_model import Held, ReferenceSession, Refused
from .servers import OwnServer

SESSION_TTL_S = 1_000.0
PROCESSES = st.sampled_from([0, 1])
KEYS = st.sampled_from(["a", "A", "a ", "é", "*", "b'\\"])
VALUES = st.sampled_from([0, 1, 7, -3, None, "text", {"x": 1, "y": [2]}, {"y": [2], "x": 1}])
TTLS = st.sampled_from([None, None, 150.0, 250.0])
LABELS = st.sampled_from([None, "label"])


class Clock:
    """Advances the clocks of a storage and of the processes that use it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.move_storage: Callable[[float], None] = lambda seconds: None

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s

    def move(self, seconds: float) -> None:
        self.ahead_s += seconds
        self.move_storage(seconds)


class Machine(RuleBasedStateMachine):
    """Both processes against `ReferenceSession`."""

    storages: ClassVar[tuple[Storage, Storage]]
    runner: ClassVar[asyncio.Runner]
    clock: ClassVar[Clock]
    proxy: ClassVar[WireProxy | None] = None
    count: ClassVar[int] = 0

    @initialize(evicts=st.booleans())
    def begin(self, evicts: bool) -> None:
        Machine.count += 1
        options: dict[str, Any] = {
            "session_ttl_s": SESSION_TTL_S,
            "max_keys": 4,
            "max_scratchpad_entries": 3,
            "max_checkpoints": 3,
            "on_full": "evict" if evicts else "refuse",
        }
        name = f"session {Machine.count}"
        self.memories = (
            WorkingMemory(name, self.storages[0], **options),
            SyncWorkingMemory(name, self.storages[1], **options),
        )
        self.turn = 0
        self.plain = ReferenceSession(4, 3, 3, evicts, SESSION_TTL_S)

    def call(self, process: int, name: str, *args: Any, **options: Any) -> Any:
        """Return the result of a method, or the name of its error."""
        try:
            outcome = getattr(self.memories[process], name)(*args, **options)
            return self.runner.run(outcome) if isinstance(outcome, Coroutine) else outcome
        except LocusMySQLError as error:
            return type(error).__name__

    def change(
        self, process: int, change: Callable[[Held], Any], written: set[str] | frozenset[str] = frozenset()
    ) -> Any:
        """Return the model's result of a write that creates a missing session."""
        held = self.plain.writing(process, begins=True)
        assert held is not None
        self.plain.use(process, held)
        try:
            answer = change(held)
            self.plain.write(process, held, written)
        except Refused as refused:
            return str(refused)
        return answer

    def remove(self, process: int, change: Callable[[Held], Any], nothing: Any) -> Any:
        """Return the model's result of a write that creates no session."""
        held = self.plain.writing(process, begins=False)
        if held is None:
            return nothing
        self.plain.use(process, held)
        answer = change(held)
        self.plain.held = held
        self.plain.write(process, held) if not self.plain.evicts else self._keep(process, held)
        return answer

    def _keep(self, process: int, held: Held) -> None:
        self.plain.held = held
        self.plain.expires_s = self.plain.now_s + SESSION_TTL_S * 9 / 8
        self.plain.read[process].clear()
        self.plain.renewed_s[process] = self.plain.now_s

    @rule(process=PROCESSES, key=KEYS, value=VALUES, ttl=TTLS)
    def set(self, process: int, key: str, value: Any, ttl: float | None) -> None:
        self._set_many(process, "set", {key: value}, ttl, (key, value))

    @rule(process=PROCESSES, mapping=st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), ttl=TTLS)
    def set_many(self, process: int, mapping: dict[str, Any], ttl: float | None) -> None:
        self._set_many(process, "set_many", mapping, ttl, (mapping,))

    def _set_many(self, process: int, name: str, mapping: dict[str, Any], ttl: float | None, args: Any) -> None:
        def change(held: Held) -> None:
            at = None if ttl is None else self.plain.now_s + ttl
            held.variables.update({key: (value, at, self.plain.uses) for key, value in mapping.items()})

        expected = self.change(process, change, set(mapping))
        assert self.call(process, name, *args, ttl_s=ttl) == expected

    @rule(process=PROCESSES, key=KEYS)
    def get(self, process: int, key: str) -> None:
        held = self.plain.reading(process)
        found = key in held.variables
        assert self.call(process, "get", key, "absent") == (held.variables[key][0] if found else "absent")
        self.plain.note_use(process, [key] if found else [])

    @rule(process=PROCESSES, key=KEYS)
    def exists_and_ttl(self, process: int, key: str) -> None:
        held = self.plain.reading(process)
        assert self.call(process, "exists", key) == (key in held.variables)
        left = self.call(process, "ttl", key)
        at = held.variables[key][1] if key in held.variables else None
        assert (left is None) == (at is None)
        assert at is None or at - self.plain.now_s - 60 < left <= at - self.plain.now_s

    @rule(process=PROCESSES, keys=st.lists(KEYS, min_size=1, max_size=3, unique=True))
    def delete_many(self, process: int, keys: list[str]) -> None:
        def change(held: Held) -> int:
            return sum(held.variables.pop(key, None) is not None for key in keys)

        assert self.call(process, "delete_many", keys) == self.remove(process, change, 0)

    @rule(process=PROCESSES)
    def clear(self, process: int) -> None:
        def change(held: Held) -> int:
            gone = len(held.variables)
            held.variables.clear()
            return gone

        assert self.call(process, "clear") == self.remove(process, change, 0)

    @rule(process=PROCESSES, key=KEYS, by=st.sampled_from([1, -5, 2**62]))
    def increment(self, process: int, key: str, by: int) -> None:
        def change(held: Held) -> int:
            number, at, _ = held.variables.get(key, (0, None, 0))
            if type(number) is not int or not -(2**63) <= number + by < 2**63:
                raise Refused("InvalidInput")
            held.variables[key] = (number + by, at, self.plain.uses)
            return int(number + by)

        expected = self.change(process, change, {key})
        assert self.call(process, "increment", key, by) == expected

    @rule(process=PROCESSES, key=KEYS, expected=st.one_of(st.just(MISSING), VALUES), value=VALUES)
    def compare_and_set(self, process: int, key: str, expected: Any, value: Any) -> None:
        def change(held: Held) -> bool:
            now, at, _ = held.variables.get(key, (MISSING, None, 0))
            if now is not expected and (now is MISSING or expected is MISSING or now != expected):
                return False
            held.variables[key] = (value, at, self.plain.uses)
            return True

        answer = self.change(process, change, {key})
        assert self.call(process, "compare_and_set", key, expected, value) == answer

    @rule(process=PROCESSES, steps=st.sampled_from([None, 1, 2]))
    def set_task_state(self, process: int, steps: int | None) -> None:
        task = None if steps is None else TaskState(task_id="task").advance(steps)

        def change(held: Held) -> None:
            held.task = task

        expected = self.change(process, change)
        assert self.call(process, "set_task_state", task) == expected

    @rule(process=PROCESSES, note=st.sampled_from(["one", "two", ""]))
    def append(self, process: int, note: str) -> None:
        expected = self.change(process, lambda held: held.notes.append(note))
        assert self.call(process, "append_scratchpad", note) == expected

    @rule(process=PROCESSES)
    def clear_scratchpad(self, process: int) -> None:
        def change(held: Held) -> int:
            gone = len(held.notes)
            held.notes.clear()
            return gone

        assert self.call(process, "clear_scratchpad") == self.remove(process, change, 0)

    @rule(process=PROCESSES, label=LABELS)
    def create_checkpoint(self, process: int, label: str | None) -> None:
        checkpoint_id = self.call(process, "create_checkpoint", label)
        assert self.change(process, lambda held: self.plain.take(checkpoint_id, held)) is None

    @rule(
        process=PROCESSES,
        mapping=st.dictionaries(KEYS, VALUES, max_size=2),
        key=KEYS,
        ttl=TTLS,
        which=st.integers(0, 9),
    )
    def change_and_restore(
        self, process: int, mapping: dict[str, Any], key: str, ttl: float | None, which: int
    ) -> None:
        self.create_checkpoint(process, None)
        if mapping:
            self.set_many(1 - process, mapping, ttl)
        self.delete_many(process, [key])
        self.restore_checkpoint(process, which)

    @rule(process=PROCESSES, which=st.integers(0, 9))
    def restore_checkpoint(self, process: int, which: int) -> None:
        there = [one[0] for one in self.plain.checkpoints]
        checkpoint_id = there[which % len(there)] if there and which < 9 else "none"
        undo_id = self.call(process, "restore_checkpoint", checkpoint_id)
        held = self.plain.writing(process, begins=False)
        taken = next((one for one in self.plain.checkpoints if one[0] == checkpoint_id), None)
        if held is None or taken is None:
            assert undo_id == "NotFound"
            return
        self.plain.use(process, held)
        self.plain.take(undo_id, held, spared=checkpoint_id)
        _, at_s, then = taken
        same = {
            key: held.variables[key]
            for key, (value, ends, _) in then.variables.items()
            if ends is None and key in held.variables and held.variables[key] == (value, ends, then.variables[key][2])
        }
        variables = {
            key: (value, None if ends is None else self.plain.now_s + ends - at_s, self.plain.uses)
            for key, (value, ends, _) in then.variables.items()
        }
        self._keep(process, Held({**variables, **same}, then.task, list(then.notes)))

    @rule(process=PROCESSES, which=st.integers(0, 9))
    def delete_checkpoint(self, process: int, which: int) -> None:
        there = [one[0] for one in self.plain.checkpoints]
        checkpoint_id = there[which % len(there)] if there and which < 9 else "none"

        def change(_: Held) -> bool:
            before = len(self.plain.checkpoints)
            self.plain.checkpoints = [one for one in self.plain.checkpoints if one[0] != checkpoint_id]
            return len(self.plain.checkpoints) < before

        assert self.call(process, "delete_checkpoint", checkpoint_id) == self.remove(process, change, False)

    @rule(process=PROCESSES)
    def touch(self, process: int) -> None:
        assert self.call(process, "touch") == self.remove(process, lambda _: True, False)

    @rule(process=PROCESSES)
    def end(self, process: int) -> None:
        assert self.call(process, "end") == self.plain.end(process)

    @rule(hundreds=st.sampled_from([1, 1, 2, 12]))
    def move_the_clock(self, hundreds: int) -> None:
        self.clock.move(100.0 * hundreds)
        self.plain.now_s += 100.0 * hundreds

    @rule()
    def sweep(self) -> None:
        self.storages[1].sweep_blocking()

    @rule(process=PROCESSES, sent=st.booleans())
    def lose_an_answer(self, process: int, sent: bool) -> None:
        if self.proxy is not None and process == 0:
            self.proxy.drop_after_send() if sent else self.proxy.drop_before()
            self.append(0, "after a lost answer")

    @invariant()
    def either_sees_what_there_is(self) -> None:
        self.turn = 1 - self.turn
        process = self.turn
        held = self.plain.reading(process)
        seen = self.call(process, "get_many", ["a", "A", "a ", "é", "*", "b'\\"])
        assert seen == {key: value for key, (value, *_) in held.variables.items()}
        self.plain.note_use(process, [key for key in ("a", "A", "a ", "é", "*", "b'\\") if key in seen])
        assert self.call(process, "list_keys") == sorted(held.variables)
        assert self.call(process, "get_scratchpad") == held.notes
        assert self.call(process, "get_task_state") == held.task
        listed = [info.checkpoint_id for info in self.call(process, "list_checkpoints")]
        assert listed == [one[0] for one in reversed(self.plain.checkpoints)]
        assert self.call(process, "stats").keys == len(held.variables)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(operations, "monotonic", clock.monotonic)
    return clock


def run(storages: tuple[Storage, Storage], clock: Clock, proxy: WireProxy | None) -> None:
    with asyncio.Runner() as runner:
        Machine.storages, Machine.clock, Machine.proxy, Machine.runner = storages, clock, proxy, runner
        try:
            run_state_machine_as_test(Machine, settings=settings(settings.get_profile("server")))
        finally:
            runner.run(storages[0].aclose())
            storages[1].close()


def test_any_sequence_of_calls_from_two_processes_in_memory(clock: Clock) -> None:
    storage = InMemoryStorage(clock=lambda: int((time.time() + clock.ahead_s) * 1_000_000))
    run((storage, storage), clock, None)


@pytest.mark.slow
@pytest.mark.kept_tables("working")
def test_any_sequence_of_calls_from_two_processes_in_mysql(
    clock: Clock, make_config: MakeConfig, database: str, proxy: WireProxy
) -> None:
    through = make_config(driver="mysql-connector", host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    with connect(make_config(), database) as connection:

        def move(seconds: float) -> None:
            with connection.cursor() as cursor:
                for table, column in (
                    ("sessions", "expires_at"),
                    ("entries", "expires_at"),
                    ("history", "expires_at"),
                    ("checkpoints", "created_at"),
                ):
                    cursor.execute(
                        f"UPDATE locus_working_{table} SET {column} = {column} - INTERVAL {seconds:.0f} SECOND"
                    )
            connection.commit()
            for storage in storages:
                storage._operations.known = KnownSessions()  # it has the times from before

        storages = MySQLStorage(through), MySQLStorage(make_config(driver="pymysql"))
        clock.move_storage = move
        run(storages, clock, proxy)


@pytest.mark.slow
def test_any_sequence_of_calls_from_two_processes_in_redis(
    clock: Clock, redis_server: OwnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script reads the time of Redis; in this test, a key holds the seconds to add to it."""
    asked = "local clock = call('TIME')"
    ahead = f"{asked}\n clock[1] = clock[1] + tonumber(call('GET', 'seconds ahead') or 0)"
    script = redis_operations.SCRIPT
    assert script.count(asked) == script.count("'TIME'") == 1
    moved = script.replace(asked, ahead)
    monkeypatch.setattr(redis_operations, "SCRIPT", moved)
    monkeypatch.setattr(redis_operations, "DIGEST", hashlib.sha1(moved.encode()).hexdigest())
    with redis_server.client() as client:
        storages = RedisStorage(redis_server.url), RedisStorage(redis_server.url)

        def move(seconds: float) -> None:
            client.set("seconds ahead", int(clock.ahead_s))
            for storage in storages:
                storage._operations.clock = ServerClock()

        clock.move_storage = move
        try:
            run(storages, clock, None)
        finally:
            client.delete("seconds ahead")
