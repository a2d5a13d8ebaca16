"""Real Locus agents with Locus' own HTTP client, served over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends import HTTPCheckpointer
from locus.testing import ScriptedModel, text, tool_call
from locus.tools import tool

from locus_mysql import MySQLCheckpointer
from locus_mysql.server.application import create_app

from ..conftest import MakeConfig
from ..connecting import connect
from ..soundness import assert_sound
from .running import running

pytestmark = pytest.mark.kept_tables("agents")

#: Ids that servers, proxies and frameworks are known to misinterpret.
IDS = [
    "t", "a/b", "a//b", "/", "/a", "a/", "..", ".", "...", "../..", "..a", "a.", "%", "%2F", "a%2Fb", "%252F", "100%",
    "a?b=c", "a#b", "a;b", "a&b", "a+b", "a b", " ", "  ", "\t", "a\nb", "a\r\nb: c", "\x01", "ü/☃", "😀", "e\u0301",
    "checkpoints", "threads", "t/checkpoints", "t/checkpoints/x", "{thread_id}", "*", "'", '"', "\\", "x" * 512,
    "😀" * 512,
]  # fmt: skip


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def url(make_config: MakeConfig) -> Iterator[str]:
    with running(create_app(make_config())) as base:
        yield base


@pytest.fixture
async def client(url: str) -> AsyncIterator[HTTPCheckpointer]:
    async with HTTPCheckpointer(url, timeout=120) as one:
        yield one


@pytest.fixture
async def direct(make_config: MakeConfig) -> AsyncIterator[MySQLCheckpointer]:
    """Yield a checkpointer for agents, with direct access to the database."""
    config = make_config()
    async with MySQLCheckpointer(config) as one:
        yield one
    with connect(config, config.database) as connection:
        assert_sound(connection)


def a_state(*contents: str, **fields: Any) -> AgentState:
    return AgentState(run_id="run", messages=tuple(map(Message.user, contents)), **fields)


def contents(state: AgentState | None) -> list[str | None]:
    assert state is not None
    return [message.content for message in state.messages if message.role.value != "system"]


def heard(model: ScriptedModel) -> list[str | None]:
    """Return the texts sent to the model in its first call, without system messages."""
    return [message.content for message in model.received_messages[0] if message.role.value != "system"]


async def test_agents_that_reach_the_database_and_agents_that_do_not_go_on_with_each_others_threads(
    client: HTTPCheckpointer, direct: MySQLCheckpointer
) -> None:
    earlier = []
    for turn, checkpointer in enumerate([client, direct, client, client, direct]):
        model = ScriptedModel([tool_call("add", a=turn, b=1), text(f"answer {turn}")])
        agent = Agent(model=model, tools=[add], checkpointer=checkpointer)
        await agent.arun(f"question {turn}", thread_id="t")
        assert heard(model) == [*earlier, f"question {turn}"]
        state = await direct.load("t")
        earlier = contents(state)
        assert await client.load("t") == state
    assert [hit["snippet"] for hit in await direct.search("question")] != []
    assert await client.list_checkpoints("t", 100) == await direct.list_checkpoints("t", 100)


async def test_messages_of_agents_over_http_are_found_by_their_words(
    client: HTTPCheckpointer, direct: MySQLCheckpointer
) -> None:
    state = a_state("The zebra crossed.").with_message(Message.system("A giraffe is secret."))
    first = await client.save(state, "t")
    await client.save(state.with_message(Message.assistant("A walrus answered.")), "t")
    (hit,) = await direct.search("zebra")
    assert (hit["thread_id"], hit["checkpoint_id"]) == ("t", first)
    assert len(await direct.search("walrus")) == 1
    assert await direct.search("giraffe") == []


async def test_saves_from_both_sides_build_on_each_other(
    client: HTTPCheckpointer, direct: MySQLCheckpointer, run_sql: Callable[..., Any], database: str
) -> None:
    state = a_state("x" * 20_000)
    for turn in range(6):
        here = (client, direct)[turn % 2]
        state = (await here.load("t") or state).with_message(Message.assistant(f"more {turn}"))
        await here.save(state, "t")
    ((whole, rows),) = run_sql(f"SELECT SUM(base_seq = seq), COUNT(*) FROM {database}.locus_checkpoints")
    assert (whole, rows) == (1, 6)
    assert await client.load("t") == state


async def test_any_id_of_a_thread_survives(client: HTTPCheckpointer, direct: MySQLCheckpointer) -> None:
    for thread_id in IDS:
        state = a_state("hello", thread_id)
        first = await client.save(state, thread_id, metadata={"k": 1})
        assert await direct.load(thread_id) == state, thread_id
        assert await client.load(thread_id) == state, thread_id
        second = await direct.save(a_state("hello", "again"), thread_id)
        assert await client.list_checkpoints(thread_id) == [second, first], thread_id
        assert await client.load(thread_id, first) == state, thread_id
        assert await client.delete(thread_id, first), thread_id
        assert not await client.delete(thread_id, first), thread_id
    assert sorted(await direct.list_threads(100)) == sorted(IDS)
    for thread_id in IDS:
        assert len(await direct.list_checkpoints(thread_id)) == 1, thread_id
        assert await client.delete(thread_id), thread_id
        assert not await client.delete(thread_id), thread_id
        assert await client.load(thread_id) is None, thread_id


async def test_any_id_of_a_checkpoint_survives(client: HTTPCheckpointer, direct: MySQLCheckpointer) -> None:
    states = {one[:128]: a_state(one) for one in IDS if one not in {".", ".."}}
    for checkpoint_id, state in states.items():
        assert await client.save(state, "t", checkpoint_id) == checkpoint_id
    assert sorted(await direct.list_checkpoints("t", 100)) == sorted(states)
    for checkpoint_id, state in states.items():
        assert await client.load("t", checkpoint_id) == state, checkpoint_id
        assert await client.delete("t", checkpoint_id), checkpoint_id
        assert await client.load("t", checkpoint_id) is None, checkpoint_id
    assert await client.load("t") is None


@pytest.mark.parametrize("checkpoint_id", [".", ".."])
async def test_a_checkpoint_that_no_client_could_ask_for_is_refused(
    checkpoint_id: str, client: HTTPCheckpointer
) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        await client.save(a_state("hello"), "t", checkpoint_id)
    assert await client.load("t") is None


async def test_saves_within_a_turn_are_superseded_without_a_trace(
    client: HTTPCheckpointer, run_sql: Callable[..., Any], database: str
) -> None:
    script = [tool_call("add", a=1, b=2), tool_call("add", a=3, b=4, call_id="second"), text("7")]
    agent = Agent(model=ScriptedModel(script), tools=[add], checkpointer=client, checkpoint_every_n_iterations=1)
    await agent.arun("add", thread_id="t")
    assert len(await client.list_checkpoints("t", 100)) == 1
    assert run_sql(f"SELECT COUNT(*) FROM {database}.locus_checkpoints") == ((1,),)


async def test_a_save_that_is_repeated_changes_nothing_whatever_came_in_between(
    client: HTTPCheckpointer, url: str, table_contents: Callable[[], Any]
) -> None:
    body = {"checkpoint_id": "c", "thread_id": "t", "created_at": "2026-01-01T00:00:00+00:00"}
    body |= {"state": a_state("hello").to_checkpoint(), "metadata": {"b": [1.5, None], "a": {"x": "ü"}}}
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        first = await http.post("/threads/t/checkpoints", json=body)
        assert (first.status_code, first.json()) == (200, {"checkpoint_id": "c"})
        newer = await client.save(a_state("hello", "more"), "t")
        before = table_contents()
        reordered = {name: body[name] for name in reversed(body)} | {"created_at": "2026-01-02T00:00:00+00:00"}
        reordered["state"] = dict(reversed(body["state"].items()))  # type: ignore[arg-type]
        for repeated in (body, reordered):
            again = await http.post("/threads/t/checkpoints", json=repeated)
            assert (again.status_code, again.json()) == (first.status_code, first.json())
        after = table_contents()
        assert after["locus_checkpoints"] == before["locus_checkpoints"]
        assert await client.list_checkpoints("t") == [newer, "c"]


@pytest.mark.parametrize("other", [{"state": {"messages": [], "n": 1.0}}, {"metadata": {"k": True}}, {"metadata": {}}])
async def test_a_save_of_something_else_under_the_same_id_takes_its_place(
    other: dict[str, Any], client: HTTPCheckpointer, url: str
) -> None:
    body = {"checkpoint_id": "c", "state": {"messages": [], "n": 1}, "metadata": {"k": 1}}
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        assert (await http.post("/threads/t/checkpoints", json=body)).status_code == 200
        newer = await client.save(a_state("more"), "t")
        assert (await http.post("/threads/t/checkpoints", json={**body, **other})).status_code == 200
        assert await client.list_checkpoints("t") == ["c", newer]
        found = (await http.get("/threads/t/checkpoints/c")).json()["state"]
        assert repr(found) == repr({**body, **other}["state"])


async def test_any_json_value_is_read_back_unchanged(url: str) -> None:
    state = {
        "messages": [], "z": 1, "a": [1, 1.0, -0.0, 1e-300, 10**40, True, None, "", "\x00 \x7f \u2028 😀 \ud7ff"],
        "": {"": {"": []}}, "deep": [[[[{"a": [[]]}]]]], "1": {"b": 1, "a": 2},
    }  # fmt: skip
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        saved = await http.post("/threads/t/checkpoints", json={"checkpoint_id": "c", "state": state})
        assert saved.status_code == 200
        found = (await http.get("/threads/t/checkpoints/c")).json()["state"]
    assert repr(found) == repr(state)


async def test_a_limit_is_kept_to_and_a_larger_one_than_there_can_be_is_none(client: HTTPCheckpointer) -> None:
    ids = [await client.save(a_state(str(turn)), "t") for turn in range(3)]
    assert await client.list_checkpoints("t", 2) == ids[:0:-1]
    assert await client.list_checkpoints("t", 10**30) == ids[::-1]
    assert await client.list_checkpoints("t", 0) == []
