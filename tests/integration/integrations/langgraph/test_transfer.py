"""Copies from any LangGraph saver."""

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
from locus_mysql.integrations.langgraph import acopy_checkpoints, copy_checkpoints
from locus_mysql.integrations.langgraph.transfer.savers import same_tuple

from ...commands import dsn_of
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


def test_the_published_package_s_checkpoints_are_copied_by_their_name(
    published: tuple[MySQLConfig, PyMySQLSaver],
    make_config: MakeConfig,
    open_saver: OpenSaver,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config, source = published
    fill(source, delta=False)
    count = len(list(source.list(None)))
    command = ["copy", "--from", f"langgraph-{dsn_of(config)}", "--to", dsn_of(make_config())]
    assert main([*command, "--dry-run"]) == 0
    assert f"6 threads: {count} checkpoints to copy" in capsys.readouterr().out
    assert main(command) == 0
    assert f"6 threads: {count} checkpoints copied" in capsys.readouterr().out
    assert_same_checkpoints(source, open_saver("pymysql-sync"), in_order=False)
    assert main(command) == 0
    assert f"0 checkpoints copied, {count} already present" in capsys.readouterr().out
    go_on(open_saver("pymysql-sync"))
