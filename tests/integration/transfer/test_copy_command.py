"""The command `copy`: its output without secrets, and copies that are killed, stopped, or run concurrently."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from locus.memory.backends.file import FileCheckpointer
from locus.memory.checkpointer import BaseCheckpointer

from locus_mysql import SyncMySQLCheckpointer, copy_threads
from locus_mysql.cli.main import main
from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.records.moving import Moving

from ..commands import dsn_of
from ..conftest import MakeConfig
from .conftest import contents, conversation, kept, save_all

pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning")  # from Locus' Redis

DEADLINE_S = 240.0

THREADS, TURNS = 12, 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with threads in files."""
    folder = tmp_path / "threads"

    async def fill() -> None:
        checkpointer = FileCheckpointer(folder)
        for number in range(THREADS):
            await save_all(checkpointer, f"t{number:02}", conversation(TURNS, f"word{number}"))

    asyncio.run(fill())
    return folder


def same_as(folder: Path, config: MySQLConfig) -> None:
    """Check that the tables contain exactly the threads in the files."""

    async def compare() -> None:
        files = FileCheckpointer(folder)
        async with MySQLCheckpointer(config) as target:
            assert {*await target.list_threads(1000)} == {*await files.list_threads(1000)}
            for thread in await files.list_threads(1000):
                assert await contents(target, thread) == await contents(files, thread)

    asyncio.run(compare())


@pytest.mark.kept_tables("agents")
def test_a_folder_is_copied_and_again_nothing(
    folder: Path, config: MySQLConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["copy", "--from", f"file:{folder}", "--to", "mysql"]
    assert main([*command, "--dry-run"]) == 0
    assert main(command) == 0
    assert main([*command, "--verify"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("12")] == [
        "12 threads: 72 checkpoints to copy.",
        "12 threads: 72 checkpoints copied.",
        "12 threads: 0 checkpoints copied, 72 already present, 72 identical on both sides.",
    ]
    same_as(folder, config)


@pytest.mark.kept_tables("agents")
def test_tenants_options_and_names_from_the_environment(
    folder: Path, config: MySQLConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCUS_MYSQL_COPY_FROM", f"file:{folder}")
    monkeypatch.setenv("SOMEWHERE", f"{dsn_of(config)}?tenant=acme")
    assert main(["copy", "--to", "env:SOMEWHERE", "--thread", "t03", "--tenant", "not this one"]) == 0
    assert main(["copy", "--to", "mysql", "--pattern", "t0?", "--tenant", "other"]) == 0
    with SyncMySQLCheckpointer(config) as checkpointer:
        assert checkpointer.list_threads() == []
        with checkpointer.tenant_scope("acme"):
            assert checkpointer.list_threads() == ["t03"]
        with checkpointer.tenant_scope("other"):
            assert len(checkpointer.list_threads()) == 10
    capsys.readouterr()
    assert main(["copy", "--to", "env:NOWHERE"]) == 1
    assert "no variable 'NOWHERE'" in capsys.readouterr().err


def test_errors_are_reported_in_a_sentence_without_passwords(
    config: MySQLConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_URL", "redis://:sesame@127.0.0.1:1/0")
    for source, words in (
        ("env:SECRET_URL", "ConnectionError"),
        ("redis://someone:sesame@127.0.0.1:1/0", "ConnectionError"),
        ("http://someone:sesame@127.0.0.1:1/api", "does not answer"),
        ("nothing", "names no checkpointer"),
        ("no.such.module:sesame", "cannot be imported"),
        ("mysql://someone:sesame@127.0.0.1:1/app", "127.0.0.1"),
        ("builtin-mysql", "does not exist"),
        ("mysql", "Both sides"),
    ):
        assert main(["copy", "--from", source, "--to", "mysql", "--thread", "t"]) == 1, source
        printed = capsys.readouterr()
        assert words in printed.err, source
        assert "sesame" not in (printed.err + printed.out).replace("module:sesame", "")
        assert "Traceback" not in printed.err
    assert main(["copy", "--to", "mysql"]) == 1
    assert "LOCUS_MYSQL_COPY_FROM" in capsys.readouterr().err


#: Runs a command, and asks its process to stop after the third transaction.
STOPPED = """
import os, signal, sys
from locus_mysql.records.moving import Moving
from locus_mysql.records.owner_writer import OwnerWriter
from locus_mysql.cli.main import main
write = OwnerWriter._once
calls = []

def counted(self, *steps, **options):
    done = yield from write(self, *steps, **options)
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    return done

OwnerWriter._once = counted
Moving.max_rows = 4
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.kept_tables("agents")
def test_a_stopped_copy_says_how_to_go_on_and_is_completed_by_the_next(folder: Path, config: MySQLConfig) -> None:
    command = ["copy", "--from", f"file:{folder}", "--to", "mysql"]
    stopped = subprocess.run([sys.executable, "-c", STOPPED, *command], capture_output=True, text=True)
    assert stopped.returncode == 128 + signal.SIGTERM
    assert "Run the copy again: it continues where it stopped." in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert main(command) == 0
    same_as(folder, config)


@pytest.mark.kept_tables("agents")
async def test_a_write_to_the_target_during_the_copy_is_not_lost(
    config: MySQLConfig, tmp_path: Path, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FileCheckpointer(tmp_path / "threads")
    await save_all(files, "t", conversation(8))
    at, looked = Moving.at, list[bool]()

    async with MySQLCheckpointer(config) as target:
        await copy_threads(files, target, pattern="t")
        await save_all(files, "t", conversation(2), "late")

        def interrupted(self: Moving, keys: Any) -> Any:
            stored = yield from at(self, keys)
            if not looked:
                looked.append(True)
                with SyncMySQLCheckpointer(make_config(driver="pymysql")) as other:
                    other.save(conversation(1)[0], "t", "intruder")
            return stored

        monkeypatch.setattr(Moving, "at", interrupted)
        reported: list[str] = []
        report = await copy_threads(files, target, notify=reported.append)
        assert (report.left_alone, report.copied) == (1, 0)
        assert "has checkpoints of its own" in reported[0]
        assert [one for one, *_ in await kept(config, "t")] == [*(f"cp-{n}" for n in range(8)), "intruder"]
        assert (await copy_threads(files, target, overwrite=True)).copied == 10
        assert await contents(target, "t") == await contents(files, "t")


class Lying(BaseCheckpointer):
    """A source that lists missing threads, lists some twice, and fails for some."""

    def __init__(self, states: list[Any]) -> None:
        self.states = states

    @property
    def capabilities(self) -> Any:
        return FileCheckpointer(".").capabilities

    async def save(self, *args: Any, **kwargs: Any) -> str:
        raise AssertionError("a source is only read")

    async def load(self, thread_id: str, checkpoint_id: str | None = None) -> Any:
        if thread_id == "fails":
            raise OSError("disk on fire")
        index = int((checkpoint_id or "0").removeprefix("cp-"))
        if index == 2:
            raise ValueError("a state's content")
        return self.states[index] if index < len(self.states) else None

    async def list_checkpoints(self, thread_id: str, limit: int = 10) -> list[str]:
        return ["cp-9", "cp-3", "cp-2", "cp-3", "cp-1", "cp-0"]

    async def list_threads(self, limit: int = 100, pattern: str = "*") -> list[str]:
        return ["good", "fails", "good", "better"]


@pytest.mark.kept_tables("agents")
async def test_a_source_that_lies_is_copied_as_far_as_it_holds(config: MySQLConfig) -> None:
    states = conversation(4)
    reported: list[str] = []
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(Lying(states), target, notify=reported.append)
        assert (report.failed, report.complete) == (1, False)
        for thread in ("good", "better"):
            assert [one for one, *_ in await kept(config, thread)] == ["cp-0", "cp-1", "cp-3"]
        assert not await target.exists("fails")
    text = "".join(reported)
    assert "Thread 'fails' was not copied: OSError: disk on fire" in text
    assert "'cp-9'" in text
    assert "a state's content" not in text


@pytest.mark.kept_tables("agents")
async def test_when_one_thread_after_another_fails_the_copy_gives_up(config: MySQLConfig) -> None:
    class Away(Lying):
        async def list_threads(self, limit: int = 100, pattern: str = "*") -> list[str]:
            return [f"t{number}" for number in range(1000)]

        async def load(self, thread_id: str, checkpoint_id: str | None = None) -> Any:
            raise ConnectionError("gone")

    async with MySQLCheckpointer(config) as target:
        with pytest.raises(Exception, match="10 threads failed one after another"):
            await copy_threads(Away([]), target)
