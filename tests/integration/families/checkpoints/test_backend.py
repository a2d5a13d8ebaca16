"""The storage backend keeps one current state per id, used directly and under Locus' own adapter."""

from __future__ import annotations

import dataclasses
import inspect
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.backends.mysql import MySQLBackend as BuiltIn

from locus_mysql import MySQLBackend, MySQLConfig, SyncMySQLBackend
from locus_mysql.errors import ConfigError

from ...conftest import EACH_WAY
from .conftest import Make, RunSQL
from .test_store import conversation

pytestmark = pytest.mark.kept_tables("current")


async def test_metadata_queries_bring_the_states_along(backend: Any) -> None:
    for number in range(6):
        await backend.save(f"t{number}", conversation(number + 1), metadata={"even": number % 2 == 0})
    found = await backend.query_by_metadata("even", True)
    assert [one["thread_id"] for one in found] == ["t4", "t2", "t0"]
    assert [one["data"] for one in found] == [conversation(5), conversation(3), conversation(1)]
    assert len(await backend.query_by_metadata("even", False, 2)) == 2


async def test_a_part_of_metadata_finds_the_whole(backend: Any) -> None:
    await backend.save("t", {"a": 1}, metadata={"tags": ["a", "b"], "who": {"name": "Ann", "team": 7}})
    await backend.save("u", {"a": 2}, metadata={"tags": "ab", "who": {"team": 70}})
    for key, part in [("tags", "a"), ("tags", ["b"]), ("who", {"team": 7})]:
        assert [one["data"] for one in await backend.query_by_metadata(key, part)] == [{"a": 1}]


async def test_ids_are_listed_by_pattern_first(backend: Any) -> None:
    for name in ("a1", "a2", "b1"):
        await backend.save(name, {})
    assert await backend.list_threads("a*") == ["a2", "a1"]
    assert await backend.list_threads("*", 2) == ["b1", "a2"]
    assert await backend.list_threads(pattern="*", limit=2, offset=1) == ["a2", "a1"]
    assert await backend.count("?1") == 2


async def test_patterns_may_be_those_of_the_built_in_backend(backend: Any) -> None:
    for name in ("user_1", "user-1", "100%", "other"):
        await backend.save(name, {})
    assert await backend.list_threads("user%") == ["user-1", "user_1"]
    assert await backend.list_threads("user\\_%") == ["user_1"]
    assert await backend.list_threads("user_%") == ["user-1", "user_1"]
    assert await backend.list_threads("user_1") == ["user_1"]  # without %, _ is literal: this is an id
    assert await backend.list_threads("*%") == ["100%"]  # a glob
    assert await backend.count("%") == await backend.count("*") == 4


async def test_an_agents_state_is_saved_in_either_order(backend: Any) -> None:
    state = AgentState(run_id="r").with_message(Message.user("hello"))
    await backend.save("t", state, metadata={"a": 1})
    await backend.save(state, "u", "c")
    assert await backend.load("t") == await backend.load("u") == state.to_checkpoint()
    assert AgentState.from_checkpoint(await backend.load("u")) == state
    assert (await backend.get_metadata("u"))["checkpoint_id"] == "c"


async def test_times_are_text_as_with_locus_own_backends(backend: Any) -> None:
    await backend.save("t", {"a": "pear"}, metadata={"b": 1})
    answers = [
        await backend.get_metadata("t"),
        *await backend.query_by_metadata("b", 1),
        *await backend.search("pear"),
        *await backend.search_data("a", "pear"),
        *await backend.list_with_metadata(),
    ]
    assert len(answers) == 5
    for answer in answers:
        times = [value for name, value in answer.items() if name in {"created_at", "updated_at"}]
        assert times
        assert all(datetime.fromisoformat(value).utcoffset() == timedelta(0) for value in times)
    assert json.loads(json.dumps(answers)) == answers


@pytest.mark.parametrize("kind", [MySQLBackend, SyncMySQLBackend])
def test_the_backend_accepts_the_arguments_of_the_built_in_backend(kind: Any) -> None:
    places = inspect.signature(BuiltIn.__init__).parameters
    assert [*places][1:7] == ["host", "port", "database", "user", "password", "dsn"]
    config = kind("db.example", 3307, "app", "agent", "pw", max_pool_size=4).config
    assert (config.host, config.port, config.database, config.user) == ("db.example", 3307, "app", "agent")
    assert (config.password.get_secret_value(), config.pool_size) == ("pw", 4)
    assert kind("db.example").config.database == BuiltIn("db.example").config.database
    assert kind("mysql://h/app", max_pool_size=3).config.database == "app"
    assert kind(MySQLConfig(host="h")).config.host == "h"


@pytest.mark.parametrize(
    ("arguments", "options", "remedy"),
    [
        (("h",), {"host": "h"}, "host is given twice"),
        (("mysql://h/app", 3306), {}, "keywords"),
        (("h", 1, "d", "u", "p", None, 4), {}, "Only six"),
        (("h",), {"table_name": "t"}, "table_prefix"),
        (("user:secret@h/app",), {}, "host"),
    ],
)
def test_the_backend_refuses_invalid_arguments_at_once(arguments: Any, options: Any, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy) as caught:
        MySQLBackend(*arguments, **options)
    assert "secret" not in str(caught.value)


async def test_the_other_operations_work_on_current_states(backend: Any) -> None:
    await backend.save("t", {"messages": ["apple"], "user": "Ann"}, metadata={"a": 1})
    assert await backend.copy_thread("t", "u")
    assert {hit["thread_id"] for hit in await backend.search("apple")} == {"t", "u"}
    assert {one["thread_id"] for one in await backend.search_data("user", "Ann")} == {"t", "u"}
    assert [info["thread_id"] for info in await backend.list_with_metadata()] == ["u", "t"]
    assert await backend.vacuum(0) == 2


async def test_overwriting_leaves_nothing_behind(backend: Any, sql: RunSQL) -> None:
    for turn in range(60):
        await backend.save("counter", {"n": turn, "note": f"note {turn}"})
    ((rows, size),) = sql("SELECT COUNT(*), SUM(LENGTH(payload)) FROM locus_state_checkpoints")
    assert rows <= 3
    assert size < 400


@pytest.mark.parametrize("side", [side for side in EACH_WAY if side.endswith("-async")])
async def test_locus_adapter_makes_a_checkpointer_of_it(make_backend: Make) -> None:
    adapter = StorageBackendAdapter(make_backend().store)
    assert all(dataclasses.asdict(adapter.capabilities).values())
    state = AgentState(run_id="r")
    ids = []
    for turn in range(5):
        state = state.with_message(Message.user(f"pineapple {turn}"))
        ids.append(await adapter.save(state, "thread", metadata={"turn": turn}))
    loaded = await adapter.load("thread")
    assert [message.content for message in loaded.messages] == [f"pineapple {turn}" for turn in range(5)]
    assert await adapter.list_checkpoints("thread") == ids[::-1]
    first = await adapter.load("thread", ids[0])
    assert len(first.messages) == 1
    assert await adapter.exists("thread", ids[2])
    assert "thread" in {str(one).split(":")[0] for one in await adapter.list_threads()}
    assert await adapter.search("pineapple")
    assert await adapter.delete("thread", ids[0])
    assert await adapter.load("thread", ids[0]) is None
    assert await adapter.delete("thread")
    assert await adapter.load("thread") is None
