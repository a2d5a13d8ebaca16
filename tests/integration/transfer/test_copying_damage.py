"""Copies into damaged or expired tables, with lost answers, and of huge states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.file import FileCheckpointer

from locus_mysql import copy_threads
from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.records.moving import Moving
from locus_mysql.records.owner_writer import OwnerWriter

from ..conftest import MakeConfig
from ..proxy import WireProxy
from .conftest import contents, conversation, save_all

pytestmark = pytest.mark.kept_tables("agents")


@pytest.fixture
def files(tmp_path: Path) -> FileCheckpointer:
    return FileCheckpointer(tmp_path / "threads")


async def test_lost_answers_double_nothing(
    files: FileCheckpointer, make_config: MakeConfig, proxy: WireProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moving, "max_rows", 4)
    for number in range(6):
        await save_all(files, f"t{number}", conversation(5))
    config = make_config(driver="asyncmy", host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    once, lost = OwnerWriter._once, 0

    def losing(self: OwnerWriter, *steps: Any, **options: Any) -> Any:
        nonlocal lost
        lost += 1
        if lost % 2:
            proxy.drop_after_send()
        yield from once(self, *steps, **options)

    monkeypatch.setattr(OwnerWriter, "_once", losing)
    async with MySQLCheckpointer(config) as target:
        await target.load("nothing")
        report = await copy_threads(files, target, at_once=1, verify=True)
        assert (report.copied, report.verified, report.complete) == (30, 30, True)
        for number in range(6):
            assert await contents(target, f"t{number}") == await contents(files, f"t{number}")
    assert lost >= 12


@pytest.mark.slow
async def test_large_states_are_copied_and_a_thread_with_one_beyond_a_packet_is_named(
    files: FileCheckpointer, make_config: MakeConfig, run_sql: Any
) -> None:
    ((limit,),) = run_sql("SELECT @@GLOBAL.max_allowed_packet")
    state = AgentState(run_id="run")
    for index in range(2):
        state = state.with_message(Message.user(f"{index}" * 3_000_000))
        await files.save(state, "t", f"cp-{index}")
    await files.save(state.with_message(Message.user("x" * (int(limit) + 1_000))), "t", "beyond")
    await files.save(state.with_message(Message.user("after")), "t", "after")
    reported: list[str] = []
    async with MySQLCheckpointer(make_config(search=False, table_prefix="large_", compression="none")) as target:
        report = await copy_threads(files, target, notify=reported.append)
        assert (report.copied, report.left_out, report.failed) == (0, 1, 0)
        assert "max_allowed_packet" in reported[0]
        await files.delete("t", "beyond")
        assert (await copy_threads(files, target, verify=True)).verified == 3
        assert (await copy_threads(files, target)).present == 3


async def test_a_source_needs_no_more_than_select(config: MySQLConfig, make_config: MakeConfig, run_sql: Any) -> None:
    reader = f"r{config.database[-16:]}"
    run_sql(f"CREATE USER {reader} IDENTIFIED BY 'secret'")
    try:
        run_sql(f"GRANT SELECT ON {config.database}.* TO {reader}")
        async with (
            MySQLCheckpointer(config) as writer,
            MySQLCheckpointer(make_config(user=reader, password="secret")) as source,
            MySQLCheckpointer(make_config(tenant="acme")) as target,
        ):
            await save_all(writer, "t", conversation(3))
            report = await copy_threads(source, target, verify=True)
            assert (report.copied, report.verified, report.complete) == (4, 4, True)
    finally:
        run_sql(f"DROP USER {reader}")
