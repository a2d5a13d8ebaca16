"""Copies from and to the folder of a `FileCheckpointer`, in which others may have planted files."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.file import FileCheckpointer

from locus_mysql import copy_threads
from locus_mysql.integrations.locus.transfer import files
from locus_mysql.integrations.locus.transfer.agent_checkpoints import AgentCheckpoint
from locus_mysql.integrations.locus.transfer.files import LINKED, FileSource
from locus_mysql.runtime.transfer import TransferReport
from locus_mysql.transfer.thread_sides import UnreadableCheckpoint

SECRET = {"checkpoint_id": "s", "thread_id": "secret", "created_at": "2026-01-01T00:00:00+00:00", "metadata": {}}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with a checkpoint of thread t, next to a folder that no copy may read."""
    checkpointer = FileCheckpointer(tmp_path / "threads")
    state = AgentState(run_id="r", messages=(Message.user("hello"),))
    asyncio.run(checkpointer.save(state, "t", "c"))
    (outside := tmp_path / "outside").mkdir()
    (outside / "s.json").write_text(json.dumps({**SECRET, "state": state.to_checkpoint()}))
    return tmp_path / "threads"


def copied(base: Path) -> tuple[dict[str, list[AgentCheckpoint | UnreadableCheckpoint]], FileSource]:
    """Return the checkpoints of a source by thread."""
    source = FileSource(FileCheckpointer(base), lambda _: None)

    async def read() -> dict[str, list[AgentCheckpoint | UnreadableCheckpoint]]:
        await source.open()
        threads = [thread async for thread in source.threads("*")]
        return {
            thread: [one async for one in source.load(thread, await source.checkpoints(thread))] for thread in threads
        }

    return asyncio.run(asyncio.wait_for(read(), 60)), source


@pytest.mark.parametrize("kind", ["link", "link to a device", "FIFO", "folder", "too large"])
def test_entries_that_are_not_regular_files_are_reported_as_unreadable(
    base: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = base / "t" / "planted.json"
    if kind == "link":
        path.symlink_to(base.parent / "outside" / "s.json")
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        monkeypatch.setattr(files, "MAX_FILE_BYTES", 100_000)
        with path.open("wb") as sparse:
            sparse.truncate(1 << 40)
    found, source = copied(base)
    kinds: dict[str, list[Any]] = {thread: [type(one) for one in given] for thread, given in found.items()}
    assert kinds == {"t": [UnreadableCheckpoint, AgentCheckpoint]} or kinds == {
        "t": [AgentCheckpoint, UnreadableCheckpoint]
    }
    (unreadable,) = [one for one in found["t"] if isinstance(one, UnreadableCheckpoint)]
    assert "planted.json" in unreadable.why
    assert not source.gaps


def test_folders_that_are_links_are_left_out_and_counted_as_a_gap(base: Path) -> None:
    (base / "linked").symlink_to(base.parent / "outside", target_is_directory=True)
    found, source = copied(base)
    assert [*found] == ["t"]
    assert source.gaps == {LINKED}


def test_a_base_folder_may_be_a_link(base: Path) -> None:
    (link := base.parent / "link").symlink_to(base, target_is_directory=True)
    found, source = copied(link)
    assert [type(one) for one in found["t"]] == [AgentCheckpoint]
    assert not source.gaps


@pytest.mark.parametrize(
    "kind", ["link", "dangling link", "link to a device", "FIFO", "folder", "folder of the thread"]
)
def test_nothing_is_written_through_planted_links_in_the_target(base: Path, kind: str) -> None:
    (target := base.parent / "target" / "t").mkdir(parents=True)
    (other := base.parent / "other.json").write_text("of another program")
    planted = target / "c.json.tmp"
    if kind == "link":
        planted.symlink_to(other)
    elif kind == "dangling link":
        planted.symlink_to(base.parent / "new.json")
    elif kind == "link to a device":
        planted.symlink_to("/dev/full")
    elif kind == "FIFO":
        os.mkfifo(planted)
    elif kind == "folder":
        planted.mkdir()
    else:
        target.rmdir()
        target.symlink_to(base.parent / "outside", target_is_directory=True)
    messages: list[str] = []

    async def copy() -> TransferReport:
        files = FileCheckpointer(base), FileCheckpointer(base.parent / "target")
        return await asyncio.wait_for(copy_threads(*files, notify=messages.append), 60)

    report = asyncio.run(copy())
    assert (report.copied, report.failed, report.complete) == (0, 1, False)
    assert "'t'" in messages[0]
    assert other.read_text() == "of another program"
    assert not (base.parent / "new.json").exists()
    assert [path.name for path in (base.parent / "outside").iterdir()] == ["s.json"]


def test_a_file_that_a_killed_save_left_and_a_link_of_the_final_name_are_replaced(base: Path) -> None:
    (target := base.parent / "target" / "t").mkdir(parents=True)
    (target / "c.json.tmp").write_text("{")
    (other := base.parent / "other.json").write_text("of another program")
    (target / "c.json").symlink_to(other)
    report = asyncio.run(copy_threads(FileCheckpointer(base), FileCheckpointer(base.parent / "target")))
    assert report.complete, report
    assert not (target / "c.json").is_symlink()
    written, saved = (json.loads((folder / "c.json").read_text()) for folder in (target, base / "t"))
    assert written.keys() == saved.keys()
    assert written["state"]["messages"] == saved["state"]["messages"]
    assert other.read_text() == "of another program"
