"""Every query over ordinary rows works beside the most unusual rows that each family accepts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from locus_mysql import (
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLBackend,
)
from locus_mysql.errors import LocusMySQLError, UsageError
from locus_mysql.families.graphs.store import SyncMySQLCheckpointSaver
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.inspection import Inspector
from locus_mysql.integrations.langgraph import MySQLSaver, MySQLStore
from locus_mysql.integrations.memu import MemuDatabase
from locus_mysql.memory import HashingEmbedder
from locus_mysql.runtime.database import Database
from locus_mysql.working import SyncWorkingMemory

from ..thoroughness import FULL
from .conftest import MakeConfig
from .integrations.langgraph.test_contract import checkpoint
from .integrations.langgraph.test_odd_threads import nested
from .integrations.memu.conftest import UserModel

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]

#: Unusual values, each stored under the key ``odd``.
VALUES: list[Any] = [
    *(nested(levels) for levels in (89, 90, 99, 100, 101, 150, 199, 250, 3_000)),
    *(sign * 2**bits + off for bits in (53, 63, 64, 1_023, 1_024, 1_100) for sign in (1, -1) for off in (-1, 0, 1)),
    int("9" * 4_299),
    10**4_400,
    1.7976931348623157e308,
    5e-324,
    -0.0,
    float("nan"),
    [float("inf"), -float("inf")],
    "",
    "\0",
    {"\0": "\0"},
    "\ud800",
    {"\udfff": 1},
    {"": {"": [""]}},
    {"a.b": 1, "$": 2, '"': 3, "\\": 4, "*": 5, "[0]": 6, "'": 7, "%s": 8, "{x}": 9, "$**": 10},
    "".join(map(chr, range(1, 33))) + "\x7f\u202e\u2066\ufeff\u2028\U0010ffff",
    {"k" * 70_000: 1},
    "x" * 1_000_000,
    {f"name {number}": number for number in range(1_001)},
    list(range(3_000)),
    b"\x00\xff",
    {1: 2},
    (1, 2),
]

IDS: list[str] = [
    "",
    "x" * 512,
    "😀" * 512,
    "x" * 513,
    "nul\0",
    "half \ud800",
    "100%",
    "_",
    "*",
    "?",
    "back\\slash",
    "quote ' and \"",
    "line\nfeed\ttab",
    "\u202eright to left",
    "trailing  ",
    "a/b",
    "../..",
    "e\u0301",
    "\u00e9",
    "\U0010ffff",
]


class RowWriter:
    """Writes ordinary and unusual values by the same function, and records the refused ones."""

    def __init__(self, write: Callable[[str, dict[str, Any]], object]) -> None:
        self._write = write
        self.accepted: list[str] = []
        self.refused: list[str] = []

    def fill(self) -> None:
        self._write("plain 1", {"kind": "plain", "text": "an ordinary sentence"})
        for number, value in enumerate(VALUES):
            self._try(f"value {number}", {"kind": "odd", "odd": value})
            self._try(f"value {number} deeper", {"kind": "odd", "odd": {"in": [value]}})
        for name in IDS:
            self._try(name, {"kind": "odd"})
        self._write("plain 2", {"kind": "plain", "text": "an ordinary sentence"})
        assert len(self.accepted) > 30
        assert len(self.refused) > 5

    def _try(self, name: str, content: dict[str, Any]) -> None:
        try:
            self._write(name, content)
        except UsageError:
            self.refused.append(name)
        else:
            self.accepted.append(name)


def plain(names: Any) -> list[str]:
    """Return the ordinary names among the results."""
    return sorted(name for name in names if name.startswith("plain"))


BOTH = ["plain 1", "plain 2"]


def looked_at(names: list[str]) -> list[str]:
    """Return the listed names whose contents a run looks at: in short runs every third and the plain ones."""
    return [name for number, name in enumerate(names) if FULL or number % 3 == 0 or "plain" in name]


async def listed(
    read: Callable[..., Awaitable[Any]], *arguments: Any, name: str = "thread_id", **options: Any
) -> list[str]:
    """Return the names in a list that is read page by page, each of which it has once."""
    names: list[str] = []
    cursor = None
    while True:
        page = await read(*arguments, cursor=cursor, **options)
        names += [getattr(row, name) for row in page.items]
        if (cursor := page.cursor) is None:
            assert len(names) == len(set(names))
            return names


async def inspected(config: MySQLConfig, family: Any, *, searched: bool) -> None:
    """Run every query of the inspector about a family's threads."""
    async with Inspector(config) as inspector:
        for options in (
            {},
            {"pattern": "plain*"},
            {"pattern": "*in*"},
            {"metadata": ("kind", "plain")},
            {"min_bytes": 1},
        ):
            names = await listed(inspector.threads, family, limit=7, **options)
            assert plain(names) == BOTH, options
        for name in looked_at(names):
            assert await inspector.thread(family, name) is not None
            for row in (await inspector.history(family, name)).items:
                view = await inspector.state(family, name, row.checkpoint_id, namespace=row.namespace)
                assert view is not None
            await inspector.states(family, name)
        assert plain(one.thread_id for one in await inspector.by_metadata("kind", "plain", family=family)) == BOTH
        for value in VALUES[::3]:
            try:
                found = await inspector.by_metadata("odd", value, family=family)
            except UsageError:
                continue
            assert plain(one.thread_id for one in found) == []
        if searched:
            assert plain(hit.thread_id for hit in await inspector.search("ordinary", family=family)) == BOTH
        assert (await inspector.statistics(family)).threads >= 2
        assert len(await inspector.changed([(family, name) for name in names])) == len(names)


@pytest.mark.parametrize("kind", ["dicts", "current"])
async def test_checkpoints(make_config: MakeConfig, kind: str) -> None:
    config = make_config(driver="pymysql")
    with (SyncCheckpointStore if kind == "dicts" else SyncMySQLBackend)(config) as store:

        def write(name: str, content: dict[str, Any]) -> None:
            state = {"text": content.get("text", ""), **content}
            try:
                store.save(name, state, metadata=content)
            except UsageError:
                store.save(name, state, metadata={"kind": content["kind"]})

        RowWriter(write).fill()
        for ids in (
            store.list_threads(limit=1_000),
            store.list_threads(limit=1_000, pattern="plain*"),
            [one["thread_id"] for one in store.query_by_metadata("kind", "plain")],
            [one["thread_id"] for one in store.search_data("kind", "plain")],
            [one["thread_id"] for one in store.search("ordinary")],
            [one["thread_id"] for one in store.list_with_metadata(1_000)],
        ):
            assert plain(ids) == BOTH
        assert store.count("plain*") == 2
        assert store.load("plain 1")["kind"] == "plain"
        for number, value in enumerate(VALUES):
            for ask in (store.query_by_metadata, *([store.search_data] if number % 4 == 2 else [])):
                try:
                    found = ask("odd", value)
                except UsageError:
                    continue
                assert plain(one["thread_id"] for one in found) == []
        if kind == "dicts":
            assert store.get_disk_usage()["threads"] > 20
            assert len(store.history("plain 1")) == 1
    await inspected(config, kind, searched=True)


async def test_graphs(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with MySQLSaver(config) as saver, SyncMySQLCheckpointSaver(config.model_copy(update={"tenant": "dicts"})) as dicts:

        def write(name: str, content: dict[str, Any]) -> None:
            config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
            try:
                saver.put(config, checkpoint({"text": content.get("text")}), content, {"text": 1})  # type: ignore[arg-type]
            except TypeError as error:  # raised by LangGraph's serialiser
                raise UsageError(str(error)) from error
            config["configurable"]["checkpoint_id"] = "1"
            saver.put_writes(config, [("a", "b")], "task")

        def write_dict(name: str, content: dict[str, Any]) -> None:
            dicts.put(thread_id=name, checkpoint_id="1", checkpoint_data=content, metadata=content)

        rows = RowWriter(write)
        rows.fill()
        RowWriter(write_dict).fill()
        for filter in (None, {}, {"kind": "plain"}, {"text": "an ordinary sentence"}):
            found = [one.config["configurable"]["thread_id"] for one in saver.list(None, filter=filter)]
            assert plain(found) == BOTH, filter
            if not filter:
                assert sorted(found) == sorted({*rows.accepted, *BOTH})
        changed = {}
        for number, value in enumerate(VALUES):
            # LangGraph's savers leave NUL out.
            if (name := f"value {number}") in rows.accepted and "\\x00" not in repr(value):
                kept: Any = saver.get_tuple({"configurable": {"thread_id": name, "checkpoint_ns": ""}})
                if repr(kept.metadata["odd"]) != repr(value):
                    changed[repr(value)] = kept.metadata["odd"]
        assert changed == {"(1, 2)": [1, 2], repr("\ud800"): "?"}  # as LangGraph's serialiser does
        for name in rows.refused:
            if 0 < len(name) <= 512 and "\0" not in name and name.isprintable():
                assert saver.get_tuple({"configurable": {"thread_id": name}}) is None, name
        assert plain(dicts.list_threads(limit=1_000)) == BOTH
        assert [one["checkpoint"]["kind"] for one in dicts.list_checkpoints(thread_id="plain 2")] == ["plain"]
    await inspected(config, "graphs", searched=True)
    await inspected(config.model_copy(update={"tenant": "dicts"}), "graphs", searched=True)


async def test_transcripts(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncTranscriptStore(config) as store:

        def write(name: str, content: dict[str, Any]) -> None:
            key = TranscriptKey("zoo", "collection", name)
            item = NewItem({"type": "user", "message": {"role": "user", "content": content.get("text", "")}, **content})
            store.append(key, [item], header=Header({"kind": content["kind"], "odd": content.get("odd")}))
            try:
                store.append(key._replace(collection=name, part="part"), [NewItem(content, name)])
            except UsageError:
                store.delete(key)
                raise

        rows = RowWriter(write)
        rows.fill()
        stored = store.list_transcripts("zoo", "collection", states=True)
        assert sorted(one.key.name for one in stored) == sorted({*rows.accepted, *BOTH})
        assert [one.header.state["kind"] for one in stored if one.key.name in BOTH] == ["plain", "plain"]
        assert plain(one.key.name for one in store.recent("zoo", "collection")) == BOTH
        for name in {*rows.accepted, *BOTH}:
            (item,) = store.read(TranscriptKey("zoo", "collection", name)).items
            part = TranscriptKey("zoo", name, name, "part")
            assert set(item.content) - set(store.find(part, name).content) == {"type", "message"}
            assert part in [one.key for one in store.holding("zoo", name)]
        assert store.read(TranscriptKey("zoo", "collection", "plain 1")).items[0].content["text"] == (
            "an ordinary sentence"
        )
    async with Inspector(config) as inspector:
        names = await listed(inspector.threads, "transcripts", limit=7)
        assert len(names) == 2 * len(stored)
        for name in looked_at(names):
            assert await inspector.thread("transcripts", name) is not None
            for row in (await inspector.history("transcripts", name)).items:
                assert await inspector.state("transcripts", name, row.checkpoint_id) is not None
        hits = await inspector.search("ordinary", family="transcripts")  # it searches the last written ones
        assert [hit.thread_id for hit in hits] == ["zoo/collection/plain 2"]
        assert (await inspector.statistics("transcripts")).threads == len(names)
        assert len(await inspector.changed([("transcripts", name) for name in names])) == len(names)


async def test_memories(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    embedder = HashingEmbedder()
    index: Any = {"dims": embedder.dims, "embed": embedder, "fields": ["text"]}
    with (
        SyncMemoryStore(config, dims=embedder.dims, embed=embedder) as store,
        MySQLStore(config, index=index) as graph,
    ):

        def write(name: str, content: dict[str, Any]) -> None:
            store.put(("zoo",), name, content, metadata={"kind": content["kind"]})
            store.put(("zoo", "apart"), name, {"kind": content["kind"]}, metadata=content)
            store.put(("names", name), "key", {"kind": content["kind"]})

        RowWriter(write).fill()
        for hits in (
            store.search(("zoo",), filter={"kind": "plain"}),
            store.search(("zoo", "apart"), metadata_filter={"text": "an ordinary sentence"}),
            store.search(("zoo",), query="ordinary", way="word"),
            store.search(("zoo",), query="an ordinary sentence", way="hybrid", filter={"kind": {"$in": ["plain"]}}),
            store.search(("zoo",), query="an ordinary sentence", filter={"kind": {"$gte": "plain"}}),
        ):
            assert plain({hit.item.key for hit in hits}) == BOTH
            assert {hit.item.key for hit in hits} == {*BOTH}
        assert plain(hit.item.key for hit in store.search(("zoo", "apart"), limit=1_000)) == BOTH
        assert plain(store.list_keys(("zoo",), limit=1_000)) == BOTH
        assert plain(labels[-1] for labels in store.list_namespaces(("names",), limit=1_000)) == BOTH
        assert store.count(("zoo", "apart"), filter={"kind": "plain"}) == 2
        for value in VALUES:
            for filter in ({"odd": value}, {"odd": {"in": [value]}}, {"odd": {"$ne": value}, "kind": "plain"}):
                try:
                    hits = store.search(("zoo",), filter=filter, limit=1_000)
                except UsageError:
                    continue
                assert plain({hit.item.key for hit in hits}) == (BOTH if "kind" in filter else [])
        assert {item.key for item in graph.search(("zoo",), filter={"kind": "plain"}, limit=100)} == {*BOTH}
        assert len(graph.search(("zoo",), query="ordinary", filter={"kind": "plain"})) <= 4
        assert len(graph.list_namespaces(limit=1_000)) == len(store.list_namespaces(limit=1_000))
    async with Inspector(config) as inspector:
        assert {row.namespace[0] for row in (await inspector.namespaces(limit=500)).items} == {"zoo", "names"}
        page = await inspector.items(("zoo",), limit=500)
        assert plain(row.key for row in page.items) == BOTH
        for row in page.items:
            assert await inspector.item(("zoo",), row.key) is not None
        assert plain({hit.item.key for hit in await inspector.search_memories("ordinary", way="word")}) == BOTH


async def test_sessions(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with Database(config) as database:

        def write(name: str, content: dict[str, Any]) -> None:
            memory = SyncWorkingMemory(name, database)
            memory.set("content", content)
            memory.set(name, 1)
            memory.append_scratchpad(str(content["kind"]))

        rows = RowWriter(write)
        rows.fill()
        for name in BOTH:
            memory = SyncWorkingMemory(name, database)
            assert memory.get_all() == {"content": {"kind": "plain", "text": "an ordinary sentence"}, name: 1}
            assert sorted(memory.list_keys()) == ["content", name]
            memory.create_checkpoint("before")
        for name in rows.accepted:
            memory = SyncWorkingMemory(name, database)
            assert name in memory.list_keys()
            memory.get_all()
    async with Inspector(config) as inspector:
        for options in ({}, {"pattern": "plain*"}):
            names = await listed(inspector.sessions, name="session_id", limit=9, **options)
            assert plain(names) == BOTH
            for name in looked_at(names):
                assert await inspector.session(name) is not None


def test_memu(make_config: MakeConfig) -> None:
    memu = MemuDatabase(make_config(driver="pymysql"), user_model=UserModel)
    user = {"user_id": "ada"}
    try:

        def write(name: str, content: dict[str, Any]) -> None:
            item = memu.memory_item_repo.create_item(
                resource_id=None, memory_type="profile", summary=name, embedding=[1.0, 0.0], user_data=user
            )
            try:
                memu.memory_item_repo.update_item(item_id=item.id, extra=content)
            except LocusMySQLError:
                memu.memory_item_repo.delete_item(item.id)
                raise
            category = memu.memory_category_repo.get_or_create_category(
                name=name, description=str(content["kind"]), embedding=[1.0, 0.0], user_data=user
            )
            memu.category_item_repo.link_item_category(item.id, category.id, user)
            memu.resource_repo.create_resource(
                url=name, modality="text", local_path="/x", caption=name, embedding=None, user_data=user
            )

        RowWriter(write).fill()
        items = memu.memory_item_repo.list_items({"user_id": "ada"})
        assert plain(item.summary for item in items.values()) == BOTH
        assert plain(one.name for one in memu.memory_category_repo.list_categories(user).values()) == BOTH
        assert plain(one.url for one in memu.resource_repo.list_resources(user).values()) == BOTH
        linked = {link.item_id for link in memu.category_item_repo.list_relations(user)}
        assert plain(items[id].summary for id in linked) == BOTH
        for ranking in ("similarity", "salience"):
            found = memu.memory_item_repo.vector_search_items([1.0, 0.0], 1_000, user, ranking=ranking)
            assert plain(items[id].summary for id, _ in found) == BOTH
    finally:
        memu.close()
