"""`StrandsStorage`: the contract of the framework's `Storage` on every driver."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from strands import Agent
from strands.agent.conversation_manager import NullConversationManager
from strands.session import SnapshotSessionManager
from strands.storage import InMemoryStorage, Storage
from strands.storage.storage import _resolve_namespace
from strands.types.exceptions import StorageError

from locus_mysql import CheckpointStore, Database
from locus_mysql.inspection import Inspector
from locus_mysql.integrations.strands import StrandsStorage

from ...conftest import MakeConfig
from .conftest import MakeStorage
from .scripted_model import ScriptedModel, texts_of

pytestmark = pytest.mark.kept_tables("dicts")

LATEST = "session/customer-7/scopes/agent/support/snapshots/snapshot_latest.json"
HISTORY = "session/customer-7/scopes/agent/support/snapshots/immutable_history/"

KEYS = (
    "a",
    "A",
    "a ",
    " a",
    "a/b",
    "a/b/c",
    "é",
    "e\u0301",
    "%",
    "_",
    "*",
    "?",
    "'",
    "...",
    "a\nb",
    "\U0001f600",
    "x" * 500,
)

BLOBS = (
    b"",
    b"\0\xff\xfe\x80",
    "é\0\U0001f600".encode(),
    b"{}",
    b"[]",
    b"[1, 2.0, -0.0, 1e+16, 1E5, 10000000000000000000000000000]",
    b'{"a": 1}',
    b'{"a":1}',
    b'{"a" : 1}',
    b'{"a": 1, "a": 2}',
    b'{"a": NaN, "b": 1e400}',
    b'{"a": "\\ud800"}',
    b'{"a": "\\ud83d\\ude00"}',
    b'{"a": "\\u00e9"}',
    '{"a": "é"}'.encode(),
    b'{"data": {"messages": [{"role": "user"}], "z": null}, "messages": [1]}',
    b'{"data": {"messages": null}}',
    b'{"data": [], "json": "spaced", "base64": "x", "text": "y"}',
    b'\xef\xbb\xbf{"a": 1}',
    b'{"a": 1}\n',
    b'{"a": ' + b"9" * 5_000 + b"}",
    b"[" * 300 + b"]" * 300,
    json.dumps({"b": [1], "a": {"é": [None, True]}}, indent=2).encode(),
    b"x" * 300_000,
    bytes(range(256)) * 1_000,
)


async def test_every_blob_comes_back_byte_by_byte(make_storage: MakeStorage) -> None:
    storage, other = make_storage(), make_storage()
    for number, blob in enumerate(BLOBS):
        await storage.write(f"blobs/{number}", blob)
        await storage.write(LATEST, blob)
        assert await other.read(f"blobs/{number}") == blob
        assert await other.read(LATEST) == blob


async def test_it_answers_as_the_storage_in_memory(make_storage: MakeStorage) -> None:
    async def calls(storage: Any) -> list[Any]:
        answers: list[Any] = []

        async def call(name: str, *arguments: Any) -> None:
            try:
                answers.append((name, arguments, await getattr(storage, name)(*arguments)))
            except StorageError as error:
                answers.append((name, arguments, type(error), str(error)))

        for number, key in enumerate((*KEYS, "//k//l//", "k/l/", "", "/", "..", "a/../b", "a\\b", LATEST)):
            await call("write", key, b"dark mode %d" % number)
            await call("read", key)
        await call("write", f"{HISTORY}snapshot_0198.json", b"{}")
        await call("write", f"{HISTORY}other.json", b"{}")
        for prefix in ("", "a", "a/", "/a", "a/b", "%", "_", "*", "?", "..", "a\\", "//", "é", "nothing", "session"):
            await call("list", prefix)
        for prefix in (LATEST, LATEST[:-1], HISTORY, HISTORY[:-1], f"{HISTORY}snap", f"{HISTORY}other", "session/c"):
            await call("list", prefix)
        await call("search", "the dark mode")
        await call("search", "the")
        for key in ("a", "a", "k//l", LATEST, f"{HISTORY}snapshot_0198.json", "missing", "..", ""):
            await call("delete", key)
            await call("read", key)
        await call("list")
        below = storage.namespace("/a/b/")
        answers += [await below.list(), await below.list("c"), await below.read("c"), await below.search("dark")]
        await below.namespace("d").write("e", b"deep")
        return [*answers, await below.list(""), await storage.read("a/b/d/e")]

    ours, theirs = await calls(make_storage()), await calls(InMemoryStorage())
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine == expected


async def test_keys_that_cannot_be_stored_are_refused(make_storage: MakeStorage) -> None:
    storage = make_storage()
    for key in ("x" * 505, "a\0b", "\ud800"):
        for call in (storage.write(key, b"x"), storage.read(key), storage.delete(key)):
            with pytest.raises(StorageError):
                await call
    assert await storage.list() == []


async def test_tenants_and_other_stores_are_apart(make_config: MakeConfig, driver: str) -> None:
    async with Database(make_config(driver=driver)) as database:
        mine, acme = StrandsStorage(database), StrandsStorage(database, tenant="acme")
        await CheckpointStore(database).save("a", {"step": 1})
        await mine.write("a", b"mine")
        await acme.write("a", b"theirs")
        assert [await one.read("a") for one in (mine, acme)] == [b"mine", b"theirs"]
        assert [await one.list() for one in (mine, acme)] == [["a"], ["a"]]
        assert await CheckpointStore(database).load("a") == {"step": 1}
        storage: Storage = mine
        assert isinstance(storage, Storage)
        await CheckpointStore(database).save("strands/a", {"step": 1}, "content")
        with pytest.raises(StorageError, match="not written by StrandsStorage"):
            await mine.read("a")


async def test_an_agent_continues_from_the_snapshot_of_another_process(make_storage: MakeStorage) -> None:
    def agent(*answers: str) -> Agent:
        manager = SnapshotSessionManager("customer-7", storage=make_storage(), snapshot_trigger=lambda **_: True)
        keep = NullConversationManager()
        model = ScriptedModel(answers)
        return Agent(
            model, agent_id="support", session_manager=manager, conversation_manager=keep, callback_handler=None
        )

    first = agent("At the canal.", "Ten.")
    await first.invoke_async("Where is the office?")
    await first.invoke_async("When does it open?")
    second = agent("As I said: at the canal.")
    await second.invoke_async("Where?")
    said = ["Where is the office?", "At the canal.", "When does it open?", "Ten.", "Where?"]
    model: Any = second.model
    assert texts_of(model.received[0]) == said
    storage = make_storage()
    assert len(await storage.list(HISTORY)) == 3
    manager = SnapshotSessionManager("customer-7", storage=storage)
    third = agent()
    (oldest, *_) = await manager.list_snapshot_ids(third)
    assert await manager.restore_snapshot(third, snapshot_id=oldest)
    assert texts_of(third.messages) == said[:2]
    await manager.delete_session()
    assert await storage.list() == []


def test_a_blocking_agent_uses_it_on_its_own_event_loops(make_config: MakeConfig) -> None:
    with Database(make_config(driver="aiomysql")) as database:
        for number in range(3):
            manager = SnapshotSessionManager("customer-7", storage=StrandsStorage(database))
            agent = Agent(ScriptedModel(["Yes."]), session_manager=manager, callback_handler=None)
            agent(f"Is it {number}?")
        assert texts_of(agent.messages) == ["Is it 0?", "Yes.", "Is it 1?", "Yes.", "Is it 2?", "Yes."]


async def test_growing_snapshots_are_stored_as_what_they_add(
    make_storage: MakeStorage, run_sql: Callable[..., Any], database: str
) -> None:
    storage = make_storage(compression="none")
    messages: list[Any] = []
    written = 0
    for number in range(64):
        messages.append({"role": "user", "content": [{"text": f"{number} " * 500}]})
        snapshot = json.dumps({"data": {"messages": messages}}).encode()
        written += len(snapshot)
        before = storage.database.stats().round_trips
        await storage.write(f"{HISTORY}snapshot_{number:02}.json", snapshot)
        assert number == 0 or storage.database.stats().round_trips - before == 1
    ((stored,),) = run_sql(f"SELECT SUM(payload_bytes) FROM `{database}`.locus_store_checkpoints")
    assert stored * 6 < written


async def test_redacted_content_is_removed_by_the_write_that_overwrites_it(
    make_storage: MakeStorage, run_sql: Callable[..., Any], database: str
) -> None:
    storage = make_storage(compression="none")
    query = f"SELECT COUNT(*) FROM `{database}`.locus_store_checkpoints WHERE LOCATE('secret-7', payload)"
    messages: list[Any] = []
    for number in range(21):
        messages.append({"role": "user", "content": [{"text": f"{number} " * 500 + "secret-7"}]})
        await storage.write(LATEST, json.dumps({"data": {"messages": messages}}).encode())
        ((before,),) = run_sql(query)
        messages[-1] = {"role": "user", "content": [{"text": f"{number} " * 500}]}
        await storage.write(LATEST, json.dumps({"data": {"messages": messages}}).encode())
        ((after,),) = run_sql(query)
        assert (before, after) == (1, 0)


async def test_a_namespace_is_not_put_into_another(make_storage: MakeStorage) -> None:
    scoped = make_storage().namespace("memory")
    resolved: object = _resolve_namespace(scoped, "session")
    assert resolved is scoped


async def test_a_search_strategy_indexes_and_searches(make_storage: MakeStorage) -> None:
    class Strategy:
        def __init__(self) -> None:
            self.indexed: list[Any] = []

        async def index(self, storage: Any, key: str, data: bytes, **_: Any) -> None:
            if data == b"bad":
                raise ValueError(key)
            self.indexed.append((key, data))

        async def search(self, storage: Any, query: str, **_: Any) -> list[Any]:
            return [query]

    strategy = Strategy()
    storage = make_storage(search_strategy=strategy)
    await storage.namespace("n").write("//a", b"good")
    assert strategy.indexed == [("a", b"good")]
    assert await storage.search("q") == ["q"]  # type: ignore[comparison-overlap]
    with pytest.raises(StorageError, match="Wrote 'b' but indexing failed"):
        await storage.write("b", b"bad")
    assert await storage.read("b") == b"bad"


async def test_the_inspector_shows_a_snapshot_as_a_conversation(
    make_storage: MakeStorage, make_config: MakeConfig
) -> None:
    manager = SnapshotSessionManager("customer-7", storage=make_storage())
    agent = Agent(ScriptedModel(["At the canal."]), agent_id="support", session_manager=manager, callback_handler=None)
    await agent.invoke_async("Where is the office?")
    async with Inspector(make_config()) as inspector:
        (row,) = (await inspector.threads("dicts")).items
        assert row.thread_id == "strands/session/customer-7/scopes/agent/support/snapshots/"
        view = await inspector.state("dicts", row.thread_id)
    assert view is not None
    assert [(one.role, one.text) for one in view.messages] == [
        ("user", "Where is the office?"),
        ("assistant", "At the canal."),
    ]
