"""Writes of Pydantic AI Harness' stores whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import ModelRequest, UserPromptPart
from pydantic_ai_harness.memory import MemoryConflictError, MemoryOperation
from pydantic_ai_harness.step_persistence import ContinuableSnapshot, RunRecord, StepEvent, ToolEffectRecord

from locus_mysql.engine.operation import Operation
from locus_mysql.families.transcripts.records import TranscriptKey

from .stores import Case, Stores

WHEN = datetime(2026, 11, 1, tzinfo=UTC)
PATH = "ada/main/MEMORY.md"


def operation(number: int) -> MemoryOperation:
    return MemoryOperation(id=f"operation {number}", fingerprint=str(number))


def snapshot(texts: Sequence[str], **fields: Any) -> ContinuableSnapshot:
    messages: Any = [ModelRequest(parts=[UserPromptPart(content=text, timestamp=WHEN)]) for text in texts]
    return ContinuableSnapshot(run_id="r", step_index=len(texts), messages=messages, timestamp=WHEN, **fields)


def effect(status: Any) -> ToolEffectRecord:
    return ToolEffectRecord(run_id="r", tool_call_id="1", tool_name="mail", status=status)


def _write(side: Stores, content: str, *, number: int | None = None) -> Operation[Any]:
    given = None if number is None else operation(number)
    return side.files.write(PATH, content, expected_version=side.made, operation=given)


def file_written(side: Stores) -> None:
    side.made = side.run(_write(side, "before", number=0)).version


def run_begun(side: Stores) -> None:
    side.run(side.runs.register_run(RunRecord(run_id="r", parent_run_id="p", started_at=WHEN)))
    for texts in (["one"], ["one", "two"], ["one", "two", "three"]):
        side.run(side.runs.save_snapshot(snapshot(texts)))
    side.run(side.runs.record_tool_effect(effect("started")))


HARNESS: dict[str, Case] = {
    "write of a new file": (None, lambda side: side.begin(_write(side, "tea", number=1))),
    "write": (file_written, lambda side: side.begin(_write(side, "tea", number=1))),
    "write without a receipt": (file_written, lambda side: side.begin(_write(side, "tea"))),
    "write that is a repeated operation": (file_written, lambda side: side.begin(_write(side, "tea", number=0))),
    "delete": (
        file_written,
        lambda side: side.begin(side.files.delete(PATH, expected_version=side.made, operation=operation(1))),
    ),
    "register": (
        None,
        lambda side: side.begin(side.runs.register_run(RunRecord(run_id="r", parent_run_id="p", started_at=WHEN))),
    ),
    "event without a key": (
        run_begun,
        lambda side: side.begin(side.runs.append_event(StepEvent(run_id="r", kind="run_started", step_index=0))),
    ),
    "first snapshot": (None, lambda side: side.begin(side.runs.save_snapshot(snapshot(["one", "two"])))),
    "snapshot that removes another": (
        run_begun,
        lambda side: side.begin(side.runs.save_snapshot(snapshot(["one", "two", "three", "four"]))),
    ),
    "snapshot that removes messages": (
        run_begun,
        lambda side: side.begin(side.runs.save_snapshot(snapshot(["summary", "three"]))),
    ),
    "effect that begins": (None, lambda side: side.begin(side.runs.record_tool_effect(effect("started")))),
    "effect that ends": (run_begun, lambda side: side.begin(side.runs.record_tool_effect(effect("completed")))),
}


def harness_goes_on(side: Stores) -> None:
    """Write what follows in the file and the run."""
    found = side.run(side.files.read(PATH, max_chars=9))
    version = None if found is None else found.version
    with suppress(MemoryConflictError):
        side.run(side.files.write(PATH, "later", expected_version=version, operation=operation(7)))
    side.run(side.runs.save_snapshot(snapshot(["one", "two", "later"])))
    side.run(side.runs.append_event(StepEvent(run_id="r", kind="run_completed", step_index=1)))
    side.run(side.runs.record_tool_effect(effect("failed")))


def file_deleted(side: Stores) -> None:
    found = side.run(side.files.read(PATH, max_chars=9))
    if found is not None:
        side.run(side.files.delete(PATH, expected_version=found.version))


def run_deleted(side: Stores) -> None:
    side.transcripts.delete(TranscriptKey("pydantic-ai-steps", "", "r"), parts=True)
