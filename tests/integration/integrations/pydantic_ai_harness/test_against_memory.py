"""Random calls of the stores, compared with the framework's own in-memory stores."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai_harness.memory import (
    InMemoryStore,
    MemoryConflictError,
    MemoryOperation,
    MemoryOperationConflictError,
)
from pydantic_ai_harness.step_persistence import (
    ContinuableSnapshot,
    InMemoryStepStore,
    RunRecord,
    StepEvent,
    ToolEffectRecord,
)

from .conftest import MakeMemories, MakeSteps

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("transcripts")]

PATHS = ("MEMORY.md", "ada/main/MEMORY.md", "ada/main/tea.md", "ada/main.md", "ada/b/c.md", "Ada/main/tea.md", "ada.md")
PREFIXES = ("", "a", "ada/", "ada/main/", "ada/m", "ada/main/tea.md", "A", "x/", "ada/main", "..", "/")
WORDS = ("tea", "Tea", "green", "ada", "main", "\U0001f375", "e\u0301", "%", "_")


async def outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except (MemoryConflictError, MemoryOperationConflictError, ValueError, TypeError) as error:
        return type(error).__mro__[-3 if isinstance(error, ValueError) else 0], str(error)


class Files:
    """Calls two memory stores at random, and compares their results.

    Args:
        chosen: The source of the choices.
        tested: The tested stores: those of several processes.
    """

    def __init__(self, chosen: random.Random, tested: list[Any]) -> None:
        self._chosen = chosen
        self._tested = tested
        self._memory = InMemoryStore()
        #: Versions of the store in memory, with those of the tested one.
        self._versions: dict[str | None, str | None] = {None: None, "7777": "7777", "": ""}

    async def step(self) -> None:
        await self._chosen.choice((self._write, self._write, self._write, self._delete, self._look, self._search))()

    async def _write(self) -> None:
        text = " ".join(self._chosen.choices(WORDS, k=self._chosen.randrange(30)))
        metadata = self._chosen.choice((None, {}, {"by": text, "a": "b"}, {"by": "\0"}, {"by": 1}, {"x": "y" * 4_096}))
        if metadata is None and self._chosen.random() < 0.5:
            await self._change("write", text)
        else:
            await self._change("write_with_metadata", text, metadata=metadata)

    async def _delete(self) -> None:
        await self._change("delete")

    async def _change(self, method: str, *content: str, **options: Any) -> None:
        path = self._chosen.choice(PATHS) if self._chosen.random() < 0.95 else "../x"
        current = await outcome(self._memory.read(path, max_chars=9))
        newest = getattr(current, "version", None)
        version = newest if self._chosen.random() < 0.7 else self._chosen.choice(list(self._versions))
        operation = None
        if self._chosen.random() < 0.5:
            operation = MemoryOperation(self._chosen.choice(("1", "2", "\ud800", "x" * 900)), self._chosen.choice("ab"))
        calls = [
            getattr(store, method)(path, *content, expected_version=expected, operation=operation, **options)
            for store, expected in ((self._memory, version), (self._process, self._versions[version]))
        ]
        expected, found = [await outcome(call) for call in calls]
        if isinstance(expected, tuple):
            assert found == expected
            return
        assert (found.replayed, found.existed) == (expected.replayed, expected.existed)
        assert (found.version is None) == (expected.version is None)
        if expected.replayed:
            assert found.version == self._versions[expected.version]
        elif expected.version is not None:
            assert found.version not in self._versions.values()
            self._versions[expected.version] = found.version

    async def _look(self) -> None:
        for path in PATHS:
            expected, found = await self._both("read", path, max_chars=self._chosen.choice((-1, 1, 10, 1_000)))
            if expected is None or isinstance(expected, tuple):
                assert found == expected
            else:
                assert found.version == self._versions[expected.version]
                parts = ("content", "operation_id", "truncated", "metadata")
                assert [getattr(found, part) for part in parts] == [getattr(expected, part) for part in parts]
        for prefix in PREFIXES:
            expected, found = await self._both("list_paths", prefix, limit=self._chosen.choice((0, 1, 2, 100)))
            assert found == expected

    async def _search(self) -> None:
        query = " ".join(self._chosen.choices(WORDS, k=self._chosen.randrange(3)))
        for prefix in PREFIXES:
            limits = {
                "limit": self._chosen.choice((0, 1, 10)),
                "max_files": self._chosen.choice((0, 1, 2, 100)),
                "max_chars": self._chosen.choice((1, 2, 3, 10, 20, 50, 4_000)),
                "max_file_chars": self._chosen.choice((0, 1, 5, 1_000)),
            }
            expected, found = await self._both("search", prefix, query, **limits)
            assert found == expected, (prefix, query, limits)

    @property
    def _process(self) -> Any:
        return self._chosen.choice(self._tested)

    async def _both(self, method: str, *args: Any, **options: Any) -> tuple[Any, Any]:
        stores = (self._memory, self._process)
        expected, found = [await outcome(getattr(store, method)(*args, **options)) for store in stores]
        return expected, found


@pytest.mark.parametrize("seed", range(4))
async def test_random_calls_of_memories_have_the_results_of_the_store_in_memory(
    make_memories: MakeMemories, seed: int
) -> None:
    files = Files(random.Random(seed), [make_memories(), make_memories()])
    for _ in range(40):
        await files.step()


BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
RUNS = ("a", "A", "b.c", "é/ü")
KEYS = (
    None,
    None,
    "0:0:complete",
    "1:0:complete",
    "1:1:interrupted",
    "2:0:complete",
    "3:5:x",
    "free",
    "",
    "\0",
    "-1:x",
)


class Steps:
    """Calls two step stores at random, and compares their results.

    Args:
        chosen: The source of the choices.
        tested: The tested stores: those of several processes.
        keep: The most snapshots of a run.
    """

    def __init__(self, chosen: random.Random, tested: list[Any], keep: int | None) -> None:
        self._chosen = chosen
        self._tested = tested
        self._memory = InMemoryStepStore(max_snapshots_per_run=keep)
        self._registered: set[str] = set()
        self._histories: list[list[ModelMessage]] = [[]]
        self._number = 0

    async def step(self) -> None:
        self._number += 1
        run_id = self._chosen.choice(RUNS)
        action = (self._register, self._event, self._snapshot, self._snapshot, self._snapshot, self._effect)
        await self._chosen.choice(action)(run_id)
        await self._same("get_run", run_id=run_id)
        await self._same("list_events", run_id=run_id)
        await self._same("list_unresolved_tool_effects", run_id=run_id)
        for include in (False, True):
            await self._same("latest_snapshot", run_id=run_id, include_interrupted=include)
            await self._same("list_snapshots", run_id=run_id, include_interrupted=include)
        filters = {"parent_run_id": self._chosen.choice((None, *RUNS)), "conversation_id": self._chosen.choice("cC")}
        await self._same("list_runs", **filters)
        await self._same("list_runs", parent_run_id=self._chosen.choice(RUNS))
        await self._same("list_runs")

    async def _register(self, run_id: str) -> None:
        if run_id in self._registered:
            return
        self._registered.add(run_id)
        record = RunRecord(
            run_id=run_id,
            conversation_id=self._chosen.choice((None, "c", "C")),
            parent_run_id=self._chosen.choice((None, *RUNS)),
            metadata={"n": str(self._number)},
            started_at=BEGAN + timedelta(seconds=self._chosen.randrange(10_000)),
        )
        await self._same("register_run", record)

    async def _event(self, run_id: str) -> None:
        event = StepEvent(
            run_id=run_id,
            kind="tool_call_started",
            step_index=self._number,
            error=self._chosen.choice((None, "\0 '\u2028 \U0001f600")),
            idempotency_key=self._chosen.choice(KEYS),
        )
        await self._same("append_event", event)

    async def _snapshot(self, run_id: str) -> None:
        history = self._chosen.choice(self._histories[-6:])
        text = f"{self._number} \U0001f600 \0"
        if self._chosen.random() < 0.2:
            history = history[self._chosen.randrange(len(history) + 1) :]
        for _ in range(self._chosen.randrange(4)):
            history = [*history, ModelRequest(parts=[UserPromptPart(content=text)])]
            history.append(ModelResponse(parts=[TextPart(content=text)]))
        self._histories.append(history)
        snapshot = ContinuableSnapshot(
            run_id=run_id,
            step_index=self._number,
            messages=list(history),
            state=self._chosen.choice(("complete", "interrupted")),
            idempotency_key=self._chosen.choice((*KEYS, f"{self._number}:0:complete")),
        )
        await self._same("save_snapshot", snapshot)

    async def _effect(self, run_id: str) -> None:
        record = ToolEffectRecord(
            tool_call_id=self._chosen.choice(("call-1", "Call-1", "", "x" * 900, "\0")),
            tool_name="mail",
            run_id=run_id,
            status=self._chosen.choice(("started", "completed", "failed")),
            effect_summary=self._chosen.choice((None, "sent")),
        )
        await self._same("record_tool_effect", record)
        await self._same("get_tool_effect", run_id=run_id, tool_call_id=record.tool_call_id)

    async def _same(self, method: str, *args: Any, **options: Any) -> None:
        expected = await getattr(self._memory, method)(*args, **options)
        found = await getattr(self._chosen.choice(self._tested), method)(*args, **options)
        assert found == expected, (method, args, options)


@pytest.mark.parametrize("keep", [None, 1, 3])
@pytest.mark.parametrize("seed", range(2))
async def test_random_calls_of_steps_have_the_results_of_the_store_in_memory(
    make_steps: MakeSteps, seed: int, keep: int | None
) -> None:
    tested = [make_steps(max_snapshots_per_run=keep) for _ in range(2)]
    steps = Steps(random.Random(seed), tested, keep)
    for _ in range(40):
        await steps.step()
