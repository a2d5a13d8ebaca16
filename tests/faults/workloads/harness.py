"""Memory files and runs of Pydantic AI Harness as transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import ModelRequest, UserPromptPart
from pydantic_ai_harness.memory import MemoryOperation
from pydantic_ai_harness.step_persistence import ContinuableSnapshot, RunRecord, StepEvent, ToolEffectRecord

from locus_mysql.integrations.pydantic_ai_harness import PydanticMemoryStore, PydanticStepStore

from .workload import Call, Stores, Workload

WHEN = datetime(2026, 11, 1, tzinfo=UTC)


class MemoryFiles(Workload):
    """Files that are written and deleted by version, with and without the receipt of an operation."""

    title, family = "Pydantic AI Harness: memory files", "transcripts"
    stores = Stores(PydanticMemoryStore)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.versions: dict[str, str | None] = {}

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self._write("a.md", "one", "1"),
            lambda: self._write("a.md", "two", "2"),
            lambda: self._write("b.md", "without a receipt"),
            lambda: self._write("b.md", "again without"),
            lambda: self._delete("b.md", "3"),
            lambda: self._write("c/d.md", "more"),
            lambda: self._delete("c/d.md"),
            lambda: self._content("a.md"),
            lambda: self.store.list_paths("", limit=9),
        ]

    async def stored(self) -> Any:
        receipts = [await self.store.get_operation(_operation(number)) for number in "123"]
        contents = [await self._content(path) for path in ("a.md", "b.md", "c/d.md")]
        return contents, [receipt is not None and receipt.existed for receipt in receipts]

    async def _write(self, path: str, content: str, number: str | None = None) -> Any:
        done = await self.store.write(
            path, content, expected_version=self.versions.get(path), operation=_operation(number)
        )
        self.versions[path] = done.version
        return done.replayed, done.existed

    async def _delete(self, path: str, number: str | None = None) -> Any:
        done = await self.store.delete(path, expected_version=self.versions.pop(path), operation=_operation(number))
        return done.version, done.replayed, done.existed

    async def _content(self, path: str) -> Any:
        found = await self.store.read(path, max_chars=100)
        return None if found is None else (found.content, found.operation_id)


def _operation(number: str | None) -> MemoryOperation | None:
    return None if number is None else MemoryOperation(id=f"operation {number}", fingerprint=number)


class Runs(Workload):
    """A run with events without keys, snapshots of which two are kept, and a tool call."""

    title, family = "Pydantic AI Harness: runs", "transcripts"
    stores = Stores(lambda config: PydanticStepStore(config, max_snapshots_per_run=2))

    def calls(self) -> Sequence[Call]:
        started, done = (
            ToolEffectRecord(run_id="r", tool_call_id="1", tool_name="mail", status=status)
            for status in ("started", "completed")
        )
        return [
            lambda: self.store.register_run(RunRecord(run_id="r", parent_run_id="p", started_at=WHEN)),
            lambda: self.store.append_event(StepEvent(run_id="r", kind="run_started", step_index=0)),
            lambda: self._save("one"),
            lambda: self._save("one", "two"),
            lambda: self.store.record_tool_effect(started),
            lambda: self.store.record_tool_effect(done),
            lambda: self._save("one", "two", "three"),
            lambda: self._save("summary", "three"),
            lambda: self._latest(),
        ]

    async def stored(self) -> Any:
        runs = [one.run_id for one in await self.store.list_runs(parent_run_id="p")]
        events = [one.kind for one in await self.store.list_events(run_id="r")]
        snapshots = [_texts(one) for one in await self.store.list_snapshots(run_id="r")]
        effect = await self.store.get_tool_effect(run_id="r", tool_call_id="1")
        return runs, events, snapshots, effect and effect.status

    async def _save(self, *texts: str) -> None:
        messages: Any = [ModelRequest(parts=[UserPromptPart(content=text, timestamp=WHEN)]) for text in texts]
        await self.store.save_snapshot(ContinuableSnapshot(run_id="r", step_index=len(texts), messages=messages))

    async def _latest(self) -> Any:
        found = await self.store.latest_snapshot(run_id="r")
        return None if found is None else _texts(found)


def _texts(snapshot: ContinuableSnapshot) -> list[Any]:
    return [message.parts[0].content for message in snapshot.messages]  # type: ignore[union-attr]
