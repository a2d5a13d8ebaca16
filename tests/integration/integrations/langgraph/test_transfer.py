"""Copies from any LangGraph saver, and imports from the tables of ``langgraph-checkpoint-mysql``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.mysql.pymysql import PyMySQLSaver
from langgraph.types import Command

from locus_mysql import MySQLConfig
from locus_mysql.cli.main import main
from locus_mysql.errors import SchemaMismatch
from locus_mysql.integrations.langgraph import acopy_checkpoints, copy_checkpoints
from locus_mysql.integrations.langgraph.transfer.package_checkpoints import import_checkpoints
from locus_mysql.integrations.langgraph.transfer.savers import same_tuple
from locus_mysql.runtime.transfer import TransferReport

from ...conftest import MakeConfig
from .conftest import OpenSaver
from .graphs import asking, chat, fan_out, nested, steps
from .published import working_on_mysql_9
from .test_contract import checkpoint, logging

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]


def key_of(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


def fill(saver: Any, *, delta: bool = True) -> None:
    """Save the checkpoints of conversations, forks, interrupts, nested graphs and a failure."""
    for thread_id in ("Bob", "alice"):
        graph = chat().compile(checkpointer=saver)
        for turn in range(8):
            given = {"messages": [HumanMessage(f"{thread_id} {turn} " * 40)], "notes": {"turn": turn}}
            graph.invoke(given, key_of(thread_id))
    past = list(graph.get_state_history(key_of("alice")))[9].config
    graph.invoke({"messages": [HumanMessage("another way " * 40)]}, past)
    graph.update_state(key_of("alice"), {"count": 99})
    asking().compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, key_of("asked"))
    nested().compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, key_of("nested"))
    fan_out().compile(checkpointer=saver).invoke({"numbers": [1, 2, 3, 4, 5]}, key_of("sum"))
    with pytest.raises(RuntimeError):
        steps(3, {"step1": 1}).compile(checkpointer=saver).invoke({"log": []}, key_of("failed"))
    if delta:
        for turn in range(9):
            given = {"lines": [f"in {turn}"], "whole": [f"in {turn}"]}
            logging().compile(checkpointer=saver).invoke(given, key_of("delta"))


def assert_same_checkpoints(source: Any, target: Any, *, in_order: bool = True) -> None:
    """Compare everything. Pass ``in_order=False`` for the published saver, which does not keep the order of writes."""

    def everything(saver: Any) -> dict[Any, Any]:
        def key_of(found: Any) -> tuple[str, ...]:
            configurable = found.config["configurable"]
            return tuple(configurable[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id"))

        return {key_of(found): found for found in saver.list(None)}

    before, after = everything(source), everything(target)
    assert before.keys() == after.keys()
    assert len(before) > 30
    for key_of, found in before.items():
        ours = after[key_of]
        if not in_order:
            found, ours = (
                one._replace(pending_writes=sorted(one.pending_writes, key=lambda write: write[:2]))
                for one in (found, ours)
            )
        assert same_tuple(source, found, ours), key_of


def go_on(saver: Any) -> None:
    """Continue the copied threads, and check the results."""
    found = asking().compile(checkpointer=saver).invoke(Command(resume="Ada"), key_of("asked"))
    assert found["__interrupt__"][0].value == "Ada, how old are you?"
    assert steps(3, {}).compile(checkpointer=saver).invoke(None, key_of("failed"))["log"] == [
        "step0",
        "step1",
        "step2",
    ]
    found = chat().compile(checkpointer=saver).invoke({"messages": [HumanMessage("on")]}, key_of("alice"))
    assert found["count"] == 100


def test_checkpoints_of_any_saver_are_copied_as_they_are(open_saver: OpenSaver) -> None:
    source, target = InMemorySaver(), open_saver("pymysql-sync")
    fill(source)
    reported: list[str] = []
    summary = copy_checkpoints(source, target, notify=reported.append)
    assert summary.complete, reported
    assert summary.threads == 7
    assert summary.copied == len(list(source.list(None)))
    assert_same_checkpoints(source, open_saver("pymysql-sync"))
    again = copy_checkpoints(source, open_saver("pymysql-sync"))
    assert (again.copied, again.present) == (0, summary.copied)
    assert "already present" in str(again)
    go_on(open_saver("pymysql-sync"))
    lines = logging().compile(checkpointer=target).invoke({"lines": ["on"], "whole": ["on"]}, key_of("delta"))
    assert lines["lines"] == lines["whole"]


async def test_a_copy_resumes_where_it_stopped_and_takes_only_the_named_threads(open_saver: OpenSaver) -> None:
    source, target = InMemorySaver(), open_saver("mysql-connector-async")
    fill(source)

    class Stopping(InMemorySaver):
        left = 20

        async def aget_tuple(self, config: Any) -> Any:
            self.left -= 1
            if not self.left:
                raise ConnectionError("gone")
            return await super().aget_tuple(config)

    stopping = Stopping()
    stopping.storage, stopping.writes, stopping.blobs = source.storage, source.writes, source.blobs
    with pytest.raises(ConnectionError):
        await acopy_checkpoints(stopping, target, thread_ids=["Bob", "alice"])
    summary = await acopy_checkpoints(source, target, thread_ids=["Bob", "alice"])
    assert summary.complete
    assert summary.threads == 2
    assert summary.present > 5
    assert [found async for found in target.alist(key_of("sum"))] == []


async def test_a_checkpoint_that_comes_out_otherwise_is_named(open_saver: OpenSaver) -> None:
    class Forgetful(InMemorySaver):
        async def aget_tuple(self, config: Any) -> Any:
            found = await super().aget_tuple(config)
            return found and found._replace(metadata={})

    source = open_saver("mysql-connector-async")
    stored = await source.aput(
        {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint({}), {"step": 1}, {}
    )
    reported: list[str] = []
    summary = await acopy_checkpoints(source, Forgetful(), notify=reported.append)
    assert not summary.complete
    assert (summary.copied, summary.differing) == (0, 1)
    assert reported == [f"Checkpoint {stored['configurable']['checkpoint_id']!r} of thread 't' differs in the target."]
    assert "1 different in the target" in str(summary)


@pytest.fixture
def published(make_config: MakeConfig, run_sql: RunSQL, database: str) -> Iterator[tuple[MySQLConfig, PyMySQLSaver]]:
    """Yield the published saver in a separate schema."""
    config = make_config(database=f"{database}_old", driver="pymysql")
    run_sql(f"CREATE DATABASE {config.database}")
    (endpoint,) = config.endpoints
    dsn = (
        f"mysql://{config.user}:{config.password.get_secret_value()}@{endpoint.host}:{endpoint.port}/{config.database}"
    )
    with working_on_mysql_9(), PyMySQLSaver.from_conn_string(dsn) as saver:
        saver.setup()
        yield config, saver
    run_sql(f"DROP DATABASE {config.database}")


async def test_the_published_package_s_checkpoints_are_imported_as_they_are(
    published: tuple[MySQLConfig, PyMySQLSaver], make_config: MakeConfig, open_saver: OpenSaver
) -> None:
    config, source = published
    fill(source, delta=False)
    target = make_config(driver="asyncmy")
    dry = await import_checkpoints(config, target, TransferReport(dry_run=True))
    assert (dry.threads, dry.copied) == (6, len(list(source.list(None))))
    reported: list[str] = []
    summary = await import_checkpoints(config, target, TransferReport(notify=reported.append))
    assert summary.complete, reported
    assert (summary.threads, summary.copied) == (6, dry.copied)
    assert_same_checkpoints(source, open_saver("pymysql-sync"), in_order=False)
    again = await import_checkpoints(config, target, TransferReport())
    assert (again.copied, again.present, again.complete) == (0, summary.copied, True)
    go_on(open_saver("pymysql-sync"))
    after = await import_checkpoints(config, target, TransferReport(notify=reported.append))
    assert after.complete, reported
    assert after.present == summary.copied


async def test_an_import_resumes_where_it_stopped_and_leaves_threads_with_later_saves_alone(
    published: tuple[MySQLConfig, PyMySQLSaver], make_config: MakeConfig, open_saver: OpenSaver
) -> None:
    config, source = published
    fill(source, delta=False)
    await import_checkpoints(config, make_config(driver="asyncmy"), TransferReport())
    saver = open_saver("pymysql-sync")
    ids = [found.checkpoint["id"] for found in saver.list(key_of("Bob"))]
    for thread_id in ("Bob", "alice"):
        newest = next(saver.list(key_of(thread_id))).checkpoint["id"]
        delete = saver._operations.versions.removing.delete_checkpoint("default", thread_id, "", newest)
        assert saver._run(delete)
    chat().compile(checkpointer=saver).invoke({"messages": [HumanMessage("mine")]}, key_of("alice"))
    reported: list[str] = []
    summary = await import_checkpoints(config, make_config(driver="asyncmy"), TransferReport(notify=reported.append))
    assert (summary.copied, summary.left_alone) == (1, 1)
    assert not summary.complete
    assert "alice" in reported[0]
    assert [found.checkpoint["id"] for found in saver.list(key_of("Bob"))] == ids


async def test_a_database_without_those_tables_is_refused(make_config: MakeConfig) -> None:
    with pytest.raises(SchemaMismatch, match="source-dsn"):
        await import_checkpoints(make_config(), make_config(), TransferReport())


def test_the_command_imports(
    published: tuple[MySQLConfig, PyMySQLSaver], server_dsn: str, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, source = published
    chat().compile(checkpointer=source).invoke({"messages": [HumanMessage("hello")]}, key_of("thread"))
    base = server_dsn.rpartition("/")[0]
    arguments = ["import-langgraph", "--dsn", f"{base}/{database}", "--source-dsn", f"{base}/{database}_old"]
    assert main([*arguments, "--dry-run"]) == 0
    assert "3 checkpoints to copy" in capsys.readouterr().out
    assert main([*arguments, "--driver", "asyncmy"]) == 0
    assert "1 thread: 3 checkpoints copied." in capsys.readouterr().out
