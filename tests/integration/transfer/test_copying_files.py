"""Copying between `FileCheckpointer` and the tables: which checkpoints are copied, reported or left unchanged."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.file import FileCheckpointer
from locus.memory.backends.memory import MemoryCheckpointer

from locus_mysql import copy_threads
from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..conftest import MakeConfig
from .conftest import contents, conversation, kept, save_all

pytestmark = pytest.mark.kept_tables("agents")


@pytest.fixture
def files(tmp_path: Path) -> FileCheckpointer:
    return FileCheckpointer(tmp_path / "threads")


async def test_a_copy_is_stored_as_deltas_and_can_be_continued(files: FileCheckpointer, config: MySQLConfig) -> None:
    words = [Message.user(f"{number} " + "spoken word " * 40) for number in range(40)]
    states = [AgentState(run_id="r", messages=tuple(words[: number + 1])) for number in range(40)]
    await save_all(files, "t", states)
    async with MySQLCheckpointer(config) as target:
        await copy_threads(files, target)
        stored = sum(entry["size_bytes"] for entry in await target.history("t", 100))
        assert stored * 4 < sum(len(json.dumps(state.to_checkpoint())) for state in states)
        assert (await target.search("spoken", 5))[0]["thread_id"] == "t"
        state = await target.load("t")
        await target.save(state.with_message(Message.user("go on")), "t", "new")
        history = await target.history("t", 2)
        assert [(one["checkpoint_id"], one["parent_id"]) for one in history] == [("new", "cp-39"), ("cp-39", "cp-38")]


async def test_a_thread_that_went_on_in_the_target_is_left_alone_and_others_are_copied(
    files: FileCheckpointer, config: MySQLConfig
) -> None:
    states = conversation(4)
    await save_all(files, "moved", states[:2])
    await save_all(files, "other", states[:1])
    reported: list[str] = []
    async with MySQLCheckpointer(config) as target:
        await copy_threads(files, target)
        await target.save(states[3], "moved", "here")
        assert (await copy_threads(files, target)).complete  # nothing is missing
        await files.save(states[2], "moved", "there")
        await files.save(states[1], "other", "cp-1")
        report = await copy_threads(files, target, notify=reported.append)
        assert (report.left_alone, report.copied, report.complete) == (1, 2, False)
        assert "'moved' has checkpoints of its own" in "".join(reported)
        assert (await target.list_checkpoints("moved"))[0] == "here"


async def test_a_thread_that_nobody_wrote_to_since_becomes_what_the_source_has(
    files: FileCheckpointer, config: MySQLConfig
) -> None:
    states = conversation(5)
    await save_all(files, "t", states[:3])
    async with MySQLCheckpointer(config) as target:
        await copy_threads(files, target)
        await files.delete("t", "cp-0")
        await save_all(files, "t", states[3:], "late")
        report = await copy_threads(files, target)
        assert (report.copied, report.complete) == (4, True)
        assert [one for one, *_ in await kept(config, "t")] == ["cp-1", "cp-2", "late-0", "late-1"]


@pytest.mark.parametrize(
    "odd",
    [
        {"big": 2**300, "small": -(2**64), "floats": [0.1, 1e300, -0.0, 5e-324], "nan": math.nan, "inf": -math.inf},
        {"half": "\ud800 of a pair", "text": '\n\x1e☃ \\ " </script>', "": [[], {}]},
        {"deep": json.loads("[" * 240 + "]" * 240)},
        {"z": 1, "a": 2, "same": 1.0},
    ],
)
async def test_odd_values_come_along_exactly(files: FileCheckpointer, config: MySQLConfig, odd: dict[str, Any]) -> None:
    (state,) = conversation(1)
    await files.save(state, "t", "cp")
    path = files.base_dir / "t" / "cp.json"
    metadata = {name: value for name, value in odd.items() if name not in {"nan", "inf", "deep"}}
    content = {**json.loads(path.read_text()), "metadata": metadata}
    content["state"]["metadata"]["odd"] = odd
    path.write_text(json.dumps(content))
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(files, target, verify=True)
        assert (report.copied, report.verified, report.complete) == (1, 1, True)
        assert repr((await target.load("t")).metadata["odd"]) == repr(odd)


async def test_globs_and_named_threads(files: FileCheckpointer, config: MySQLConfig) -> None:
    for thread in ("support/1", "support/2", "sales/1", "[x]", "x"):
        await save_all(files, thread, conversation(1))
    async with MySQLCheckpointer(config) as target:
        await copy_threads(files, target, pattern="support/?")
        assert {*await target.list_threads()} == {"support/1", "support/2"}
        await copy_threads(files, target, pattern="[x]")
        assert {*await target.list_threads()} == {"support/1", "support/2", "[x]"}
        reported: list[str] = []
        report = await copy_threads(files, target, threads=["x", "nobody", "x"], notify=reported.append)
        assert (report.threads, report.copied, report.missing, report.complete) == (2, 1, 1, False)
        assert reported == ["Thread 'nobody' has no checkpoints in the source."]


async def test_only_the_newest_are_copied_where_only_those_are_kept(
    files: FileCheckpointer, make_config: MakeConfig
) -> None:
    await save_all(files, "t", conversation(5))
    async with MySQLCheckpointer(make_config(keep_checkpoints=2)) as target:
        assert (await copy_threads(files, target)).copied == 2
        assert (await copy_threads(files, target)).present == 2
        assert await target.list_checkpoints("t") == ["cp-4", "cp-3"]


async def test_a_state_that_the_target_cannot_store_is_left_out_and_those_around_it_are_not(
    files: FileCheckpointer, config: MySQLConfig
) -> None:
    states = conversation(3)
    await files.save(states[0], "t", "cp-0")
    await files.save(states[1], "t", "i" * 129)
    await files.save(states[2], "t", "cp-2")
    memory = MemoryCheckpointer()
    await memory.save(states[2], "n" * 600, "cp-0")
    reported: list[str] = []
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(files, target, notify=reported.append)
        assert (report.copied, report.left_out, report.complete) == (2, 1, False)
        report = await copy_threads(memory, target, notify=reported.append)
        assert (report.copied, report.failed, report.complete) == (0, 1, False)
        assert [one for one, _ in await contents(target, "t")] == ["cp-0", "cp-2"]
        text = "".join(reported)
        assert "129 characters" in text
        assert "600 characters" in text
