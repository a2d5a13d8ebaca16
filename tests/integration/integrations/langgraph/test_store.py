"""LangGraph's store contract: batches, filters, vectors, namespaces and expiry, also used by a graph."""

from __future__ import annotations

import asyncio
import inspect
import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, NamedTuple, TypeAlias
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langgraph.prebuilt import InjectedStore
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from locus_mysql.errors import ConfigError, InvalidInput
from locus_mysql.integrations.langgraph import AsyncMySQLStore, MySQLStore
from locus_mysql.memory import HashingEmbedder

from ...conftest import MakeConfig, Opening, parts

pytestmark = pytest.mark.kept_tables("memories")

Make: TypeAlias = Callable[..., Any]


class Place(NamedTuple):
    city: str
    id: UUID


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def embed(texts: list[str]) -> list[list[float]]:
    return [[text.lower().count(letter) + 0.01 for letter in LETTERS] for text in texts]


async def embed_async(texts: list[str]) -> list[list[float]]:
    return embed(texts)


class AnyStore:
    """One interface to both stores, with the names of LangGraph's asynchronous methods."""

    def __init__(self, store: Any, awaited: bool) -> None:
        self.store = store
        self.awaited = awaited

    def __getattr__(self, name: str) -> Callable[..., Any]:
        own = name if self.awaited or not hasattr(self.store, name[1:]) or name in OWN else name[1:]
        method = getattr(self.store, own)

        async def call(*args: Any, **options: Any) -> Any:
            outcome = method(*args, **options)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return call


OWN = {"setup", "sweep_ttl", "start_ttl_sweeper", "stop_ttl_sweeper", "close"}


@pytest.fixture
def make_store(opening: Opening, side: str) -> Make:
    def make(**options: Any) -> AnyStore:
        return AnyStore(opening(side, (AsyncMySQLStore, MySQLStore), **options).store, parts(side)[1])

    return make


@pytest.fixture
def store(make_store: Make) -> Any:
    return make_store()


async def test_a_batch_answers_in_order_and_reads_before_it_writes(store: Any) -> None:
    await store.abatch(
        [PutOp(("a",), "old", {"n": 1}), PutOp(("a",), "gone", {"n": 2}), PutOp(("b", "c"), "k", {"n": 3})]
    )
    results = await store.abatch(
        [
            PutOp(("a",), "new", {"n": 1}),
            GetOp(("a",), "old"),
            PutOp(("a",), "old", {"n": 10}),
            SearchOp(("a",), filter={"n": {"$gte": 1}}),
            GetOp(("a",), "new"),
            PutOp(("a",), "gone", None),
            PutOp(("a",), "new", {"n": 2}),
            ListNamespacesOp(),
            GetOp(("a",), "gone"),
            SearchOp(("none",)),
        ]
    )
    assert [results[config_of] for config_of in (0, 2, 4, 5, 6, 9)] == [None, None, None, None, None, []]
    assert results[1].value == {"n": 1}
    assert {item.key for item in results[3]} == {"old", "gone"}
    assert results[7] == [("a",), ("b", "c")]
    assert results[8].value == {"n": 2}
    assert (await store.aget(("a",), "new")).value == {"n": 2}
    assert (await store.aget(("a",), "old")).value == {"n": 10}
    assert await store.aget(("a",), "gone") is None
    assert await store.abatch([]) == []


async def test_a_batch_with_an_operation_that_is_refused_does_nothing(store: Any) -> None:
    for wrong in (
        PutOp(("a", ""), "k", {}),
        PutOp(("a.b",), "k", {}),
        SearchOp(("a.b",)),
        ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("a.b",)),)),
    ):
        with pytest.raises(InvalidNamespaceError):
            await store.abatch([PutOp(("a",), "k", {"n": 1}), wrong])
    for bad in (
        SearchOp(("a",), filter={"n": {"$near": 1}}),
        PutOp(("a",), "l", {"n": float("nan")}),
        PutOp(("a",), "l", [1]),
    ):
        with pytest.raises(InvalidInput):
            await store.abatch([PutOp(("a",), "k", {"n": 1}), bad])
    with pytest.raises(InvalidNamespaceError):
        await store.aput(("langgraph",), "k", {})
    assert await store.asearch(()) == []


def random_value(chosen: random.Random, depth: int) -> Any:
    kinds: list[Callable[[], Any]] = [lambda: None, lambda: chosen.choice(("x", "y")), lambda: chosen.randint(1, 3)]
    if depth:
        kinds += 3 * [
            lambda: {name: random_value(chosen, depth - 1) for name in chosen.sample("abc", chosen.randint(0, 2))}
        ]
        kinds += [lambda: [random_value(chosen, 0) for _ in range(chosen.randint(0, 2))]]
    return chosen.choice(kinds)()


def random_filter(chosen: random.Random, depth: int) -> dict[str, Any]:
    """Return a filter; the in-memory store orders numbers only, so there are no comparisons of order."""
    return {
        name: random_filter(chosen, depth - 1)
        if depth and chosen.random() < 0.6
        else chosen.choice(
            (random_value(chosen, 0), {"$ne": random_value(chosen, 1)}, {"$eq": random_value(chosen, 1)})
        )
        for name in chosen.sample("abc", chosen.randint(0 if depth < 2 else 1, 2))
    }


async def test_random_filters_are_those_of_the_store_in_memory(store: Any) -> None:
    chosen, memory = random.Random(1), InMemoryStore()
    values = [{name: random_value(chosen, 2) for name in chosen.sample("abc", 2)} for _ in range(60)]
    puts = [PutOp(("d",), f"{n:02}", value) for n, value in enumerate(values)]
    await store.abatch(puts)
    memory.batch(puts)
    filters = [{"c": {"a": None}}, {"c": {"a": {"$ne": 1}}}, {"c": {"a": {"b": None}}}, {"c": {"a": {"$eq": None}}}]
    filters += [random_filter(chosen, 2) for _ in range(300)]
    searches = [SearchOp(("d",), filter=filter, limit=100) for filter in filters]
    for search, mine, theirs in zip(searches, await store.abatch(searches), memory.batch(searches), strict=True):
        assert sorted(item.key for item in mine) == sorted(item.key for item in theirs), search.filter


async def test_tuples_times_and_uuids_are_stored_as_the_store_in_sqlite_stores_them(store: Any) -> None:
    value = {
        "pair": (1, ("a", Place("Rome", UUID(int=1)))),
        "at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
        "local": datetime(2026, 1, 2, 3, 4),
        "day": date(2026, 1, 2),
        "clock": time(3, 4, 5),
        "id": UUID(int=7),
        "in": [{"id": UUID(int=8)}],
    }
    with SqliteStore.from_conn_string(":memory:") as sqlite:
        sqlite.setup()
        sqlite.put(("d",), "k", {**value, "pair": (1, ("a", ("Rome", UUID(int=1))))})
        expected = sqlite.get(("d",), "k")
    await store.aput(("d",), "k", value)
    assert expected is not None
    assert (await store.aget(("d",), "k")).value == expected.value
    for name in value:
        for filter in ({name: value[name]}, {name: {"$eq": value[name]}}, {name: {"$in": [value[name]]}}):
            assert [item.key for item in await store.asearch(("d",), filter=filter)] == ["k"], filter
    assert await store.asearch(("d",), filter={"at": {"$lt": datetime(2026, 1, 2, tzinfo=UTC)}}) == []
    assert len(await store.asearch(("d",), filter={"at": {"$gte": datetime(2026, 1, 2, tzinfo=UTC)}})) == 1
    inside: list[Any] = []
    inside.append(inside)
    for refused in ({"a": object()}, {"a": {1, 2}}, {"a": b"x"}, {1: 2}, {"a": inside}, {"a": float("nan")}):
        with pytest.raises(InvalidInput):
            await store.aput(("d",), "k", refused)


async def test_infinities_and_nan_in_filters_compare_with_numbers_only(store: Any) -> None:
    for key, value in (("int", 10**200), ("negative", -(10**300)), ("float", 1.5), ("text", "1"), ("null", None)):
        await store.aput(("d",), key, {"n": value})
    for filter, expected in (
        ({"$lt": math.inf}, {"int", "negative", "float"}),
        ({"$gte": -math.inf}, {"int", "negative", "float"}),
        ({"$gt": -math.inf, "$lt": 2}, {"negative", "float"}),
        ({"$in": [1.5, math.nan]}, {"float"}),
        ({"$ne": math.inf}, {"int", "negative", "float", "text", "null"}),
        ({"$gt": math.inf}, set()),
    ):
        found = await store.asearch(("d",), filter={"n": filter}, limit=50)
        assert {item.key for item in found} == expected, filter
    with pytest.raises(InvalidInput, match="JSON"):
        await store.asearch(("d",), filter={"n": [math.nan]})


@pytest.mark.parametrize("function", [embed, embed_async])
async def test_items_are_found_by_meaning(make_store: Make, function: Any, side: str) -> None:
    if function is embed_async and not parts(side)[1]:
        function = embed
    store = make_store(index={"dims": 26, "embed": function, "fields": ["text", "facts[*].note"]})
    await store.aput(("d",), "cat", {"text": "cat"})
    await store.aput(("d",), "dog", {"text": "dog", "facts": [{"note": "zzz"}, {"note": "qqq"}]})
    await store.aput(("d",), "none", {"text": "cat"}, index=False)
    await store.aput(("d",), "other", {"text": "x", "title": "cat dog"}, index=["title"])
    found = await store.asearch(("d",), query="cat")
    assert [item.key for item in found] == ["cat", "other", "dog", "none"]
    assert found[0].score == pytest.approx(1.0)
    assert [item.key for item in await store.asearch(("d",), query="zzz", limit=1)] == ["dog"]
    assert [item.key for item in await store.asearch(("d",), query="qqq", limit=1)] == ["dog"]
    assert [item.key for item in await store.asearch(("d",), query="cat", limit=1, offset=1)] == ["other"]
    assert [item.key for item in await store.asearch(("d",), query="cat", filter={"text": "dog"})] == ["dog"]
    await store.aput(("d",), "cat", {"text": "cat"}, index=False)
    assert "cat" not in [item.key for item in await store.asearch(("d",), query="cat", limit=2)]
    await store.adelete(("d",), "other")
    assert (await store.asearch(("d",), query="cat"))[0].key == "dog"


async def test_items_without_an_embedding_come_last_in_pages_without_gap_or_repeat(make_store: Make) -> None:
    index = {"dims": 26, "embed": embed, "fields": ["text"]}
    store, memory = make_store(index=index), InMemoryStore(index=index)
    for n in range(7):
        for one in (store, memory):
            await one.aput(("d",), str(n), {"text": "cat" * n, "odd": n % 2}, index=None if n in {1, 4} else False)
    found = await store.asearch(("d",), query="cat")
    assert [(item.key, item.score is None) for item in found[2:]] == [(str(n), True) for n in (6, 5, 3, 2, 0)]
    expected = await memory.asearch(("d",), query="cat")
    assert {(item.key, item.score is None) for item in found} == {(item.key, item.score is None) for item in expected}
    for limit in (1, 2, 3, 5):
        pages = [await store.asearch(("d",), query="cat", limit=limit, offset=start) for start in range(0, 9, limit)]
        assert [item.key for page in pages for item in page] == [item.key for item in found]
    odd = await store.asearch(("d",), query="cat", filter={"odd": 1})
    assert [(item.key, item.score is None) for item in odd] == [("1", False), ("5", True), ("3", True)]
    assert await store.asearch(("d",), query="cat", limit=0) == []
    assert await store.asearch(("e",), query="cat") == []


async def test_the_fields_of_langgraph_s_sqlite_store_are_embedded(make_store: Make) -> None:
    store = make_store(index={"dims": 26, "embed": embed, "text_fields": ["first", "second"]})
    await store.aput(("d",), "one", {"second": "xxx", "other": "yyy"})
    await store.aput(("d",), "two", {"first": "uuu", "second": "xxx", "other": "www"})
    both = await store.asearch(("d",), query="xxx")
    assert [item.score > 0.9 for item in both] == [True, True]
    found = await store.asearch(("d",), query="uuu")
    assert [item.key for item in found] == ["two", "one"]
    assert found[0].score > found[1].score
    assert all(item.score < 0.9 for item in await store.asearch(("d",), query="www"))


async def test_scores_are_those_of_the_store_in_memory(make_store: Make) -> None:
    index = {"dims": 26, "embed": embed, "fields": ["$"]}
    store, memory = make_store(index=index), InMemoryStore(index=index)
    assert store.store.embeddings.embed_query("apple") == memory.embeddings.embed_query("apple")  # type: ignore[union-attr]
    for n, text in enumerate(["apple pie", "pear", "a long text about many things", "zebra", "apple"]):
        await store.aput(("d", str(n % 2)), str(n), {"text": text})
        memory.put(("d", str(n % 2)), str(n), {"text": text})
    for query in ("apple", "zoo", "things"):
        found, expected = await store.asearch(("d",), query=query), memory.search(("d",), query=query)
        assert [item.key for item in found] == [item.key for item in expected]
        assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-6)


async def test_without_an_index_items_with_a_word_of_the_query_come_first(store: Any) -> None:
    await store.aput(("d",), "a", {"text": "green tea"})
    await store.aput(("d",), "b", {"text": "coffee"})
    assert [(item.key, item.score) for item in await store.asearch(("d",), query="tea", limit=1)] == [("a", 1.0)]
    await store.aput(("d",), "c", {"text": "water"})
    found = await store.asearch(("d",), query="tea")
    assert [(item.key, item.score) for item in found] == [("a", 1.0), ("c", None), ("b", None)]
    pages = [await store.asearch(("d",), query="tea", limit=1, offset=start) for start in range(4)]
    assert [item.key for page in pages for item in page] == ["a", "c", "b"]
    assert [item.key for item in await store.asearch(("d",), query="nothing of that")] == ["c", "b", "a"]


async def test_a_sweeper_removes_what_has_expired(make_store: Make, sql: Any) -> None:
    store = make_store(ttl={"sweep_interval_minutes": 5})
    await store.aput(("d",), "k", {"n": 1}, ttl=0.0001)
    started = store.store.start_ttl_sweeper(0.0005)
    if inspect.iscoroutine(started):
        await started
    deadline = asyncio.get_running_loop().time() + 20
    while sql("SELECT COUNT(*) FROM locus_memory_items") != ((0,),):
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.02)
    assert await store.stop_ttl_sweeper(10)
    assert await store.stop_ttl_sweeper()


async def test_from_conn_string(make_config: MakeConfig, server_dsn: str, database: str, side: str) -> None:
    driver, awaited_side = parts(side)
    if awaited_side:
        async with AsyncMySQLStore.from_conn_string(
            server_dsn.rpartition("/")[0] + f"/{database}", driver=driver, pool_config={"min_size": 1}, pipeline=True
        ) as awaited:
            await awaited.aput(("a",), "k", {"n": 1})
            assert (await asyncio.to_thread(awaited.get, ("a",), "k")).value == {"n": 1}
            with pytest.raises(ConfigError, match="await"):
                awaited.get(("a",), "k")
    else:
        with MySQLStore.from_conn_string(
            server_dsn.rpartition("/")[0] + f"/{database}", driver=driver, pool_config={"max_size": 9}, pipeline=True
        ) as blocking:
            blocking.put(("a",), "k", {"n": 1})
            assert (await blocking.aget(("a",), "k")).value == {"n": 1}


class ToolModel(GenericFakeChatModel):
    """A scripted model that takes tools."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=name)])


@pytest.mark.parametrize(
    ("side", "blocking"),
    [("mysql-connector-async", False), ("pymysql-sync", False), ("pymysql-sync", True)],
    ids=["awaited store, awaited agent", "blocking store, awaited agent", "blocking store, blocking agent"],
)
async def test_an_agent_of_langchain_is_given_the_store(side: str, blocking: bool, make_config: MakeConfig) -> None:
    def remember(key: str, fact: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Keep a fact."""
        store.put(("users", "ada"), key, {"text": fact})
        return "kept"

    def recall(query: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Find a fact."""
        return store.search(("users", "ada"), query=query, limit=1)[0].value["text"]

    async def remember_awaited(key: str, fact: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Keep a fact."""
        await store.aput(("users", "ada"), key, {"text": fact})
        return "kept"

    async def recall_awaited(query: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Find a fact."""
        return (await store.asearch(("users", "ada"), query=query, limit=1))[0].value["text"]

    tools = [remember, recall] if blocking else [remember_awaited, recall_awaited]
    keep, find = (tool.__name__ for tool in tools)
    embedder = HashingEmbedder()
    index: Any = {"dims": embedder.dims, "embed": embedder, "fields": ["text"]}
    driver, awaited = parts(side)
    config = make_config(driver=driver)

    async def turn(*answers: AIMessage) -> list[str]:
        """Run a new conversation with a new store, like that of another process."""
        store: Any = (AsyncMySQLStore if awaited else MySQLStore)(config, index=index)
        agent = create_agent(ToolModel(messages=iter([*answers, AIMessage("Done.")])), tools=tools, store=store)
        asked: Any = {"messages": [("user", "…")]}
        found = await asyncio.to_thread(agent.invoke, asked) if blocking else await agent.ainvoke(asked)
        closing = store.close()
        if inspect.iscoroutine(closing):
            await closing
        return [message.content for message in found["messages"] if message.type == "tool"]

    assert await turn(call(keep, key="drink", fact="Ada drinks green tea")) == ["kept"]
    assert await turn(call(keep, key="home", fact="Ada lives in Lisbon")) == ["kept"]
    assert await turn(call(find, query="What does Ada drink?")) == ["Ada drinks green tea"]
    assert await turn(call(find, query="Where does Ada live?")) == ["Ada lives in Lisbon"]
