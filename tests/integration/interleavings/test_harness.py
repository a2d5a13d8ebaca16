"""Two processes write Pydantic AI Harness' files and runs: in every order of their packets, lost answers, and kills.

In every order, the results and what is stored are those of one write after the other. `test_late` delays packets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai_harness.memory import MemoryConflictError
from pydantic_ai_harness.step_persistence import RunRecord, StepEvent

from locus_mysql.engine.operation import Operation
from locus_mysql.families.transcripts import operations
from locus_mysql.families.transcripts.records import TranscriptKey
from locus_mysql.integrations.pydantic_ai_harness import file_operations
from locus_mysql.integrations.pydantic_ai_harness.file_operations import FileOperations
from locus_mysql.integrations.pydantic_ai_harness.run_operations import RunOperations

from .late.harness import WHEN, effect, operation, snapshot
from .stage import Call, Stage, finish_all, pauses

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables]

CheckTables = Callable[[], None]


@pytest.fixture(autouse=True)
def no_random_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable random maintenance: it would send packets at random times."""
    for module in (operations, file_operations):
        monkeypatch.setattr(module, "one_in", lambda one_in: False)


class Client:
    """A process with the operations on files and runs.

    Args:
        stage: The stage that controls its calls.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.process = stage.store("transcripts")
        self.version: str | None = None
        self.anew()

    def anew(self) -> None:
        """Empty the caches."""
        self.files = FileOperations(self.process.store.config)
        self.runs = RunOperations(self.process.store.config, max_snapshots_per_run=2)

    def begin(self, given: Operation[Any]) -> Call:
        return self._stage.begin("harness", self.process.store._run, (_attempt(given),), {})

    def run(self, given: Operation[Any]) -> Any:
        return self.begin(given).finish()

    def prepare(self) -> None:
        """Store the file ``a.md``, and the run ``r`` with two of its three snapshots."""
        self.anew()
        self.process.forget_tenant()
        done = self.run(self.files.write("a.md", "before", expected_version=None, operation=operation(0)))
        assert done == (False, False)
        found = self.run(_version(self.files, "a.md"))
        self.version = str(found)
        for texts in (["one"], ["one", "two"], ["one", "two", "three"]):
            self.run(self.runs.save_snapshot(snapshot(texts)))
        self.run(self.runs.record_tool_effect(effect("started")))


def _version(files: FileOperations, path: str) -> Operation[Any]:
    found = yield from files.read(path, max_chars=100)
    return None if found is None else found.version


def _attempt(given: Operation[Any]) -> Operation[Any]:
    """Return what can be compared of a result: versions are random."""
    try:
        result = yield from given
    except MemoryConflictError:
        return "refused"
    return (result.replayed, result.existed) if hasattr(result, "replayed") else result


def _write(client: Client, content: str, number: int | None, path: str = "a.md") -> Operation[Any]:
    given = None if number is None else operation(number)
    expected = client.version if path == "a.md" else None
    return client.files.write(path, content, expected_version=expected, operation=given)


FILES: dict[str, Callable[[Client], Operation[Any]]] = {
    "write": lambda client: _write(client, "one", 1),
    "write of the same operation": lambda client: _write(client, "one", 1),
    "write of another operation": lambda client: _write(client, "two", 2),
    "write without a receipt": lambda client: _write(client, "three", None),
    "creation": lambda client: _write(client, "new", 3, "b.md"),
    "creation without a receipt": lambda client: _write(client, "newer", None, "b.md"),
    "deletion": lambda client: client.files.delete("a.md", expected_version=client.version, operation=operation(4)),
}

RUNS: dict[str, Callable[[Client], Operation[Any]]] = {
    "registration": lambda client: client.runs.register_run(RunRecord(run_id="r", parent_run_id="p", started_at=WHEN)),
    "event": lambda client: client.runs.append_event(StepEvent(run_id="r", kind="run_started", step_index=0)),
    "event with a key": lambda client: client.runs.append_event(
        StepEvent(run_id="r", kind="run_failed", step_index=0, idempotency_key="k")
    ),
    "snapshot": lambda client: client.runs.save_snapshot(snapshot(["one", "two", "three", "four"])),
    "snapshot with a key": lambda client: client.runs.save_snapshot(
        snapshot(["one", "two", "five"], idempotency_key="7:a")
    ),
    "snapshot of another history": lambda client: client.runs.save_snapshot(snapshot(["summary", "three"])),
    "interrupted snapshot": lambda client: client.runs.save_snapshot(snapshot(["one", "six"], state="interrupted")),
    "effect": lambda client: client.runs.record_tool_effect(effect("completed")),
}

WRITES = FILES | RUNS

#: Pairs of writes to the same transcripts.
PAIRS = [
    *((one, other) for one in ("write", "creation") for other in FILES),
    *((one, other) for one in ("snapshot", "snapshot of another history", "registration") for other in RUNS),
]


def stored(client: Client) -> Any:
    """Return everything that is stored, read with empty caches. Missing messages raise an error."""
    client.anew()

    def look() -> Operation[Any]:
        files, runs = client.files, client.runs
        contents = []
        for path in ("a.md", "b.md"):
            found = yield from files.read(path, max_chars=100)
            contents.append(found and (found.content, found.operation_id))
        receipts = []
        for number in range(5):
            receipt = yield from files.get_operation(operation(number))
            receipts.append(receipt and (receipt.existed, receipt.version is None))
        children = yield from runs.list_runs(parent_run_id="p")
        events = yield from runs.list_events(run_id="r")
        snapshots = yield from runs.list_snapshots(run_id="r", include_interrupted=True)
        latest = yield from runs.latest_snapshot(run_id="r", include_interrupted=True)
        last = yield from runs.get_tool_effect(run_id="r", tool_call_id="1")
        return (
            *(contents, receipts, [one.run_id for one in children], [event.kind for event in events]),
            *(snapshots, latest, last and last.status),
        )

    return client.run(look())


def messages_left(client: Client) -> int:
    """Return the number of stored messages: none is left of removed snapshots only, and none twice."""
    found = client.process.get(TranscriptKey("pydantic-ai-steps", "", "r", "messages"))
    return 0 if found is None else int(found.items)


@pytest.mark.parametrize(("name", "other_name"), PAIRS)
def test_writes_of_two_processes_are_as_if_one_came_first(
    stage: Stage, check_tables: CheckTables, name: str, other_name: str
) -> None:
    one, other = Client(stage), Client(stage)
    expected = []
    for first in (True, False):
        one.prepare()
        other.version = one.version
        outcomes = {}
        for client, given in ((one, name), (other, other_name))[:: 1 if first else -1]:
            outcomes[client] = client.run(WRITES[given](client))
        expected.append((outcomes[one], outcomes[other], stored(one), messages_left(one)))
        other.anew()

    def begin() -> Call:
        one.prepare()
        other.version = one.version
        return one.begin(WRITES[name](one))

    for call in pauses(begin):
        other.anew()
        meanwhile = other.begin(WRITES[other_name](other)).run()
        finish_all(call, meanwhile)
        assert (call.finish(), meanwhile.finish(), stored(one), messages_left(one)) in expected
        check_tables()


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("lose", ["lose_request", "lose_answer"])
def test_a_write_whose_answer_is_lost_is_carried_out_once(
    stage: Stage, check_tables: CheckTables, name: str, lose: str
) -> None:
    one = Client(stage)
    one.prepare()
    expected = (one.run(WRITES[name](one)), stored(one), messages_left(one))

    def begin() -> Call:
        one.prepare()
        return one.begin(WRITES[name](one))

    for call in pauses(begin):
        getattr(call, lose)()
        assert (call.finish(), stored(one), messages_left(one)) == expected
        check_tables()


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("carried_out", [False, True])
def test_a_write_of_a_killed_process_is_whole_or_absent_and_can_be_repeated(
    stage: Stage, check_tables: CheckTables, name: str, carried_out: bool
) -> None:
    one, other = Client(stage), Client(stage)
    one.prepare()
    before = (stored(one), messages_left(one))
    one.anew()
    one.run(WRITES[name](one))
    after = (stored(one), messages_left(one))

    def begin() -> Call:
        one.prepare()
        return one.begin(WRITES[name](one))

    for call in pauses(begin):
        if carried_out:
            call.carry_out()
        call.kill()
        assert (stored(other), messages_left(other)) in (before, after)
        if stored(other) == before[0]:
            other.version = one.version
            other.run(WRITES[name](other))
            assert (stored(other), messages_left(other)) == after
        check_tables()
