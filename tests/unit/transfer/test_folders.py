"""The folder of a `FileCheckpointer` as a source, where others may have put things into it."""

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

from locus_mysql.integrations.locus.copying import files
from locus_mysql.integrations.locus.copying.files import LINKED, FileSource
from locus_mysql.integrations.locus.copying.sides import Given, Unreadable

SECRET = {"checkpoint_id": "s", "thread_id": "secret", "created_at": "2026-01-01T00:00:00+00:00", "metadata": {}}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with a checkpoint of thread t, and beside it one that nobody should be given."""
    checkpointer = FileCheckpointer(tmp_path / "threads")
    state = AgentState(run_id="r", messages=(Message.user("hello"),))
    asyncio.run(checkpointer.save(state, "t", "c"))
    (outside := tmp_path / "outside").mkdir()
    (outside / "s.json").write_text(json.dumps({**SECRET, "state": state.to_checkpoint()}))
    return tmp_path / "threads"


def copied(base: Path) -> tuple[dict[str, list[Given | Unreadable]], FileSource]:
    """What a source gives, of each thread."""
    source = FileSource(FileCheckpointer(base), lambda _: None)

    async def read() -> dict[str, list[Given | Unreadable]]:
        await source.open()
        threads = [thread async for thread in source.threads("*")]
        return {thread: [one async for one in source.given(thread, await source.listed(thread))] for thread in threads}

    return asyncio.run(asyncio.wait_for(read(), 60)), source


@pytest.mark.parametrize("kind", ["link", "link to a device", "FIFO", "folder", "too large"])
def test_what_is_no_file_of_the_folder_is_said_to_be_unreadable(
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
    assert kinds == {"t": [Unreadable, Given]} or kinds == {"t": [Given, Unreadable]}
    (unreadable,) = [one for one in found["t"] if isinstance(one, Unreadable)]
    assert "planted.json" in unreadable.why
    assert not source.gaps


def test_folders_that_are_links_are_left_out_and_counted_as_a_gap(base: Path) -> None:
    (base / "linked").symlink_to(base.parent / "outside", target_is_directory=True)
    found, source = copied(base)
    assert [*found] == ["t"]
    assert source.gaps == {LINKED}


def test_a_base_that_is_a_link_is_what_its_user_named(base: Path) -> None:
    (link := base.parent / "link").symlink_to(base, target_is_directory=True)
    found, source = copied(link)
    assert [type(one) for one in found["t"]] == [Given]
    assert not source.gaps
