"""A contestant that loses states is not measured, and failures are counted."""

import asyncio

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.retention import stamp_messages

from bench import contestants, latency, throughput
from bench.contestants import DRIVERS, SYNC_DRIVERS, check_same
from bench.floor import FLOORS, floor_of
from bench.processes import Cold, InTurn, floors_in_other_processes, in_other_processes
from bench.throughput import Conversation
from bench.workloads import Workload
from locus_mysql import MySQLConfig
from locus_mysql.drivers.interface import ConnectionLost, ServerError
from locus_mysql.engine import execution

DSN = "mysql://nobody:secret@localhost:1/none"
STATES = [AgentState(agent_id="bench").with_message(Message.user("Hello"))]
STATES.append(STATES[0].with_message(Message.assistant("Hello")))


class Dictionary:
    """Keeps states in memory."""

    name = "dictionary"

    def __init__(self) -> None:
        self.kept: dict[str, AgentState] = {}

    async def save(self, state: AgentState, thread_id: str) -> None:
        self.kept[thread_id] = state

    async def connect(self) -> None:
        pass

    async def prepare_load(self, state: AgentState) -> None:
        pass

    async def load(self, thread_id: str) -> AgentState | None:
        return self.kept.get(thread_id)

    async def close(self) -> None:
        pass


class Forgetful(Dictionary):
    """Keeps the first state of a thread only."""

    async def save(self, state: AgentState, thread_id: str) -> None:
        self.kept.setdefault(thread_id, state)


class Failing(Dictionary):
    """Fails every second save."""

    calls = 0

    async def save(self, state: AgentState, thread_id: str) -> None:
        self.calls += 1
        await asyncio.sleep(0)
        if self.calls % 2:
            raise OSError("the server is away")
        self.kept[thread_id] = state


def test_stamps_of_the_time_are_no_difference() -> None:
    check_same("stamped", stamp_messages(STATES[1]), STATES[1])


@pytest.mark.parametrize("loaded", [None, STATES[0]])
def test_another_state_or_none_is_refused(loaded: AgentState | None) -> None:
    with pytest.raises(AssertionError, match="liar loaded"):
        check_same("liar", loaded, STATES[1])


async def test_latency_is_measured_of_every_contestant_in_every_round() -> None:
    timings = await latency.in_rounds([Dictionary()], Workload("two", STATES[0], STATES[1:]), 4)

    assert len(timings["dictionary"].save) == len(timings["dictionary"].load) == 4


async def test_latency_of_a_contestant_that_loads_another_state_is_not_measured() -> None:
    with pytest.raises(AssertionError, match="another state"):
        await latency.in_rounds([Forgetful()], Workload("two", STATES[0], STATES[1:]), 4)


async def test_alternating_processes_load_the_previous_save_and_save_the_next_state() -> None:
    served: list[str] = []

    class Process(Dictionary):
        def __init__(self, name: str, kept: dict[str, AgentState]) -> None:
            self.name, self.kept = name, kept

        async def save(self, state: AgentState, thread_id: str) -> None:
            served.append(f"{self.name} saves")
            await super().save(state, thread_id)

        async def load(self, thread_id: str) -> AgentState | None:
            served.append(f"{self.name} loads")
            return await super().load(thread_id)

    kept: dict[str, AgentState] = {}
    in_turn = InTurn([Process(name, kept) for name in ("a", "b", "c")])

    await latency.in_rounds([in_turn], Workload("two", STATES[0], STATES[1:]), 1 - latency.WARM_UP_ROUNDS)
    assert served == ["a saves", "b loads", "b saves", "c loads"]
    assert in_turn.name == "a, in turn"


async def test_a_cold_load_is_by_a_process_that_has_asked_for_nothing_of_the_thread() -> None:
    kept: dict[str, AgentState] = {}
    asked: list[list[str]] = []

    class Process(Dictionary):
        def __init__(self) -> None:
            self.kept = kept
            self.asked: list[str] = []
            asked.append(self.asked)

        async def connect(self) -> None:
            self.asked.append("to connect")

        async def load(self, thread_id: str) -> AgentState | None:
            self.asked.append(thread_id)
            return await super().load(thread_id)

    cold = Cold(Process)
    for state in STATES:
        await cold.save(state, "thread")
        await cold.prepare_load(state)
        assert await cold.load("thread") == state

    assert asked == [[], ["to connect", "thread"], ["to connect", "thread"]]
    assert cold.name == "dictionary, cold"


def conversation(states: list[AgentState]) -> Conversation:
    return Conversation("talk", states, index=0)


async def test_throughput_counts_saves_and_failures() -> None:
    tally = throughput.Tally()

    await throughput.run_slice(Failing(), [conversation(STATES), conversation(STATES)], tally, 0.02)

    assert tally.failures["OSError"] > 0
    assert abs(tally.failures["OSError"] - len(tally.waits_ms)) <= 2


async def test_throughput_of_a_contestant_that_lost_a_save_is_not_measured() -> None:
    talk = conversation([STATES[0], *[STATES[1]] * 1_000_000])
    with pytest.raises(AssertionError, match="another state"):
        await throughput.run_slice(Forgetful(), [talk], throughput.Tally(), 0.2)


async def test_conversations_at_once_are_at_different_places_and_begin_anew_in_a_new_thread() -> None:
    dictionary = Dictionary()

    first, second = await throughput.begun(dictionary, [*STATES, *STATES], "two", 2)

    assert (first.index, second.index) == (1, 3)
    assert dictionary.kept == {"two/0/0": STATES[0], "two/1/0": STATES[0]}
    second.go_on()
    assert (second.thread_id, second.state, second.stored) == ("two/1/1", STATES[0], None)


async def test_throughput_is_measured_with_every_message_of_a_conversation() -> None:
    states = await throughput.conversation_states()

    assert [len(state.messages) for state in states] == list(range(2, throughput.MESSAGES + 2))


def test_repeated_batches_are_counted_and_those_after_lock_waits_apart() -> None:
    tally = throughput.Tally()
    with throughput.counted_retries(tally):
        retry = execution.Retry(MySQLConfig(dsn=DSN), reached_before=True)
        retry.wait_after(ConnectionLost("gone"))
        retry.wait_after(ServerError(1205, "lock wait"))

    assert (tally.retries, tally.lock_waits) == (1, 1)
    assert execution.Retry is not type(retry)


def test_every_contestant_of_this_project_stands_on_a_floor_that_is_measured() -> None:
    ours = [contestants.ours(DSN, driver).name for driver in DRIVERS]
    ours += [contestants.ours_blocking(DSN, driver).name for driver in SYNC_DRIVERS]
    ours += [contestant.name for contestant in in_other_processes(DSN)]

    assert contestants.OURS in ours
    floors = [floor.name for floor in FLOORS] + [floor.name for floor in floors_in_other_processes(DSN)]
    assert {floor_of(name) for name in ours} == set(floors)
