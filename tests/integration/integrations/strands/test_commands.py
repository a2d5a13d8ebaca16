"""Snapshots and sessions on the command line: listed, shown, exported, and imported with the same bytes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from strands import Agent
from strands.session.repository_session_manager import RepositorySessionManager

from locus_mysql import MySQLConfig
from locus_mysql.cli import main as cli
from locus_mysql.integrations.strands import StrandsSessionRepository, StrandsStorage

from ...commands import dsn_of
from ...conftest import MakeConfig
from .scripted_model import ScriptedModel
from .test_storage import BLOBS, HISTORY, LATEST


@pytest.mark.kept_tables("dicts")
def test_an_import_keeps_every_byte_and_the_next_snapshot_builds_on_it(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: MySQLConfig = make_config(driver="aiomysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    messages = [{"role": "user", "content": [{"text": f"{number} " * 300}]} for number in range(20)]
    snapshots = [json.dumps({"data": {"messages": messages[:number]}}).encode() for number in range(1, 20)]

    async def write() -> list[str]:
        async with StrandsStorage(config) as storage:
            for number, blob in enumerate(BLOBS):
                await storage.write(f"blobs/{number}", blob)
            for number, snapshot in enumerate(snapshots):
                await storage.write(f"{HISTORY}snapshot_{number:02}.json", snapshot)
            await storage.write(LATEST, snapshots[-1])
            return await storage.list()

    async def check(keys: list[str]) -> None:
        async with StrandsStorage(config.model_copy(update={"tenant": "acme"})) as storage:
            assert await storage.list() == keys
            assert [await storage.read(f"blobs/{number}") for number in range(len(BLOBS))] == list(BLOBS)
            for number, snapshot in enumerate(snapshots):
                assert await storage.read(f"{HISTORY}snapshot_{number:02}.json") == snapshot
            assert await storage.read(LATEST) == snapshots[-1]
            await storage.write(LATEST, snapshots[3])
            assert await storage.read(LATEST) == snapshots[3]

    keys = asyncio.run(write())
    file = str(tmp_path / "threads.jsonl")
    assert cli.main(["export", file, "--family", "dicts"]) == 0
    assert cli.main(["import", file, "--tenant", "acme"]) == 0
    asyncio.run(check(keys))


@pytest.mark.kept_tables("transcripts")
def test_the_command_of_the_documents_shows_a_session(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config: MySQLConfig = make_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    with StrandsSessionRepository(config) as repository:
        manager = RepositorySessionManager("customer-7", repository)
        Agent(ScriptedModel(["At the canal."]), session_manager=manager, callback_handler=None)("Where is the office?")
    assert cli.main(["show", "strands//customer-7/agent~1default", "--family", "transcripts"]) == 0
    shown = capsys.readouterr().out
    assert "Where is the office?" in shown
    assert "At the canal." in shown
