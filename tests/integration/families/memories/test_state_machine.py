"""Random concurrent operations of two memory stores, with some answers lost, compared with a plain dict."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar

import pymysql
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from locus_mysql import MemoryStore, SyncMemoryStore
from locus_mysql.errors import VersionConflict
from locus_mysql.families.memories import nearest
from locus_mysql.families.memories.arguments import begins_with, ends_with, path_of
from locus_mysql.families.memories.nearest import NearestOperations
from locus_mysql.families.memories.puts import Put
from locus_mysql.families.memories.statements.tables import table_names

from ...conftest import MakeConfig
from ...connecting import connect
from ...proxy import WireProxy
from .reference_model import Found, Key, ModelMemories

DIMS = 9
#: So few candidates in a cold search that most ranges hold more.
SERVER_CANDIDATES = 5
#: The asynchronous store keeps all embeddings in memory, the blocking store ranges of about eight.
CACHE_BYTES = (1_000_000, 3_500)

_chance = random.Random(11)
_APART = [[_chance.gauss(centre, 1) for _ in range(DIMS)] for centre in (0, 0, 0, 1, 1, -1)]
#: Each has neighbours that are nearer than sign bits can distinguish, and several items may use any of them.
VECTORS = [[value + _chance.gauss(0, spread) for value in one] for one in _APART for spread in (0, 0.01, 0.01, 0.01)]
WORDS = ["apple", "plum", "pear", "melon"]

STORES = st.sampled_from([0, 1])
NAMESPACES = st.sampled_from([("a",), ("a", "b"), ("A",), ("ab",), ("a", "b", "c")])
PREFIXES = st.sampled_from([(), ("a",), ("a", "b"), ("A",), ("none",)])
KEYS = st.tuples(NAMESPACES, st.sampled_from(["k", "K", "k ", "l", "m", "n"]))
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True).map(" ".join)
VALUES = st.fixed_dictionaries({"n": st.integers(0, 3), "t": TEXTS})
FILTERS = st.sampled_from([None, None, {"n": 1}, {"n": {"$gte": 2}}])
VECTOR = st.integers(0, len(VECTORS) - 1)
#: The embeddings of an item: one that is given, two, that of its text, or none.
MEANINGS = st.one_of(
    st.tuples(st.just("given"), VECTOR),
    st.tuples(st.just("several"), st.tuples(VECTOR, VECTOR)),
    st.tuples(st.just("text"), st.none()),
    st.tuples(st.just("none"), st.none()),
)
ITEMS = st.tuples(KEYS, VALUES, MEANINGS, st.booleans())
TIME_TO_LIVE_S = 3_600.0


def embed(texts: list[str]) -> list[list[float]]:
    """Return a deterministic embedding for each text."""
    return [VECTORS[sum(map(ord, text)) % len(VECTORS)] for text in texts]


class Memories(RuleBasedStateMachine):
    """An asynchronous and a blocking store on the same tables, like those of two processes."""

    connection: ClassVar[pymysql.Connection[Any]]
    stores: ClassVar[tuple[MemoryStore, SyncMemoryStore]]
    runner: ClassVar[asyncio.Runner]
    proxy: ClassVar[WireProxy]

    @initialize()
    def begin(self) -> None:
        self.model = ModelMemories()
        for table in table_names("locus_").values():
            self._sql(f"DELETE FROM {table}")

    # Writes

    @rule(store=STORES, item=ITEMS, metadata=st.sampled_from([{}, {"m": 1}]))
    def put(self, store: int, item: Any, metadata: dict[str, Any]) -> None:
        key, value, meaning, expires = item
        written = self._call(store, "put", *key, value, metadata=metadata, **_options(meaning, expires))
        assert written == self._put(item, metadata)

    @rule(store=STORES, item=ITEMS, off=st.sampled_from([0, 0, 1, -1]))
    def put_if_version(self, store: int, item: Any, off: int) -> None:
        key, value, meaning, expires = item
        relied = max(0, self.model.version(key) + off)
        options = _options(meaning, expires)
        if relied == self.model.version(key):
            assert self._call(store, "put", *key, value, if_version=relied, **options) == self._put(item, {})
            return
        with pytest.raises(VersionConflict):
            self._call(store, "put", *key, value, if_version=relied, **options)

    @rule(store=STORES, items=st.lists(ITEMS, max_size=12), wrong=st.sampled_from([False, False, False, True]))
    def put_batch(self, store: int, items: list[Any], wrong: bool) -> None:
        """Put all items, or none if one of them expects a version that does not exist."""
        if wrong and items:
            conflicting = items[-1][0]
            batch = [_put(item, self.model.version(conflicting) + 1 if item is items[-1] else None) for item in items]
            with pytest.raises(VersionConflict):
                self._call(store, "put_batch", batch)
            return
        self._call(store, "put_batch", [_put(item) for item in items])
        self._put_all(items)

    @rule(store=STORES, namespace=NAMESPACES, values=st.lists(VALUES, min_size=6, max_size=6), nearest=VECTOR)
    def fill_a_namespace(self, store: int, namespace: Any, values: list[Any], nearest: int) -> None:
        """Write items whose embeddings are near each other, and search for one of them."""
        embeddings = [nearest - nearest % 4 + index % 4 for index in range(6)]
        rows = zip("kKlmn", values, embeddings, strict=False)
        items = [((namespace, key), value, ("given", one), False) for key, value, one in rows]
        self._call(store, "put_batch", [_put(item) for item in items])
        self._put_all(items)
        for limit in (1, 2):
            self.search_by_meaning(1 - store, (), None, nearest, limit, 0, None, True, False)

    @rule(store=STORES, items=st.lists(ITEMS, max_size=6), deleted=st.lists(KEYS, max_size=6))
    def write_batch(self, store: int, items: list[Any], deleted: list[Key]) -> None:
        """Put some items and delete others; an item in both lists is deleted."""
        there = sum(key in self.model.items or any(item[0] == key for item in items) for key in set(deleted))
        before = sum(key in self.model.items for key in set(deleted))
        count = self._call(store, "write_batch", [_put(item) for item in items], deleted)
        assert before <= count <= there
        self._put_all([item for item in items if item[0] not in deleted])
        for key in deleted:
            self.model.delete(key)

    # Removals

    @rule(store=STORES, key=KEYS)
    def delete(self, store: int, key: Key) -> None:
        assert self._call(store, "delete", *key) is self.model.delete(key)

    @rule(store=STORES, keys=st.lists(KEYS, max_size=10))
    def delete_batch(self, store: int, keys: list[Key]) -> None:
        count = self._call(store, "delete_batch", keys)
        assert count == sum([self.model.delete(key) for key in keys])

    @rule(store=STORES, namespace=NAMESPACES)
    def clear_namespace(self, store: int, namespace: tuple[str, ...]) -> None:
        gone = [key for key in self.model.items if key[0] == namespace]
        assert self._call(store, "clear_namespace", namespace) == len(gone)
        for key in gone:
            self.model.delete(key)

    @rule(keys=st.one_of(st.lists(KEYS, min_size=1, max_size=10), st.none()), store=STORES, query=VECTOR)
    def expire(self, keys: list[Key] | None, store: int, query: int) -> None:
        """Make these items, or all, expire if they have a time to live; expired ones do not displace others."""
        gone: list[Key] = []
        for key in list(self.model.items) if keys is None else keys:
            if key in self.model.items and self.model.items[key].expires:
                self._set_expiry(key, "UTC_TIMESTAMP(6) - INTERVAL 1 MICROSECOND")
                self.model.delete(key)
                gone.append(key)
        self.search_by_meaning(store, (), None, query, 2, 0, None, False, False)
        self.list_namespaces(store, (), (), None, 9, 0)
        if gone:
            self.put_if_version(store, (gone[0], {"n": 0, "t": "plum"}, ("none", None), True), 0)

    @rule(store=STORES, key=KEYS, way=st.sampled_from(["get_item", "get_batch"]))
    def refresh(self, store: int, key: Key, way: str) -> None:
        """A read with ``refresh`` restores the full time to live of an item that expires soon; other reads do not."""
        if key not in self.model.items or not self.model.items[key].expires:
            return
        self._set_expiry(key, "UTC_TIMESTAMP(6) + INTERVAL 900 SECOND")
        for refreshed in (False, True):
            if way == "get_item":
                item = self._call(store, way, *key, refresh=refreshed)
            else:
                item = self._call(store, way, [key], refresh=refreshed)[key]
            ((left_s,),) = self._sql("SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), %s)", item.expires_at)
            assert (left_s > 1_800) is refreshed

    @rule(store=STORES)
    def sweep(self, store: int) -> None:
        """Vacuum removes expired items and all rows that refer to them."""
        self._call(store, "sweep")
        items = table_names("locus_")["items"]
        assert self._sql(f"SELECT COUNT(*) FROM {items}") == ((len(self.model.items),),)

    @rule(store=STORES)
    def purge(self, store: int) -> None:
        """Vacuum removes the marks of removed embeddings, as after an hour."""
        self._run(store, self._procedures(store).writing.purge_removed("default", age_us=-1_000_000))
        assert self._sql(f"SELECT COUNT(*) FROM {table_names('locus_')['vectors']} WHERE removed = 1") == ((0,),)

    # Faults

    @rule(fault=st.sampled_from(["drop_before", "drop_after_send"]), command=st.integers(1, 3))
    def break_a_connection(self, fault: str, command: int) -> None:
        """Break a connection at one of the next commands, before the server receives it or before its answer."""
        getattr(self.proxy, fault)(command)

    @rule(store=STORES)
    def restart(self, store: int) -> None:
        """Empty the caches of a process."""
        procedures = self._procedures(store)
        procedures.nearest = NearestOperations(procedures.sql, CACHE_BYTES[store], procedures.sealed)

    @rule(batches=st.tuples(st.lists(ITEMS, min_size=1, max_size=6), st.lists(ITEMS, min_size=1, max_size=6)))
    def write_two_batches_at_once(self, batches: tuple[list[Any], list[Any]]) -> None:
        """Concurrent writes have the same effect as sequential ones."""
        one, other = ([_put(item) for item in items] for items in batches)
        self._both(self.stores[0].put_batch(one), lambda: self.stores[1].put_batch(other))
        found = [hit.item for hit in self._call(0, "search", limit=100)]
        for order in (batches, batches[::-1]):
            model = copy.deepcopy(self.model)
            for items in order:
                _put_all(model, items)
            expected = [hit.key for hit in model.newest(model.items)]
            if len(expected) == len(found) and all(map(_same, found, [model] * len(found), expected)):
                self.model = model
                return
        raise AssertionError(f"neither order explains {found}")

    @rule(item=ITEMS, prefix=PREFIXES, query=VECTOR, writer=STORES)
    def search_while_the_other_writes(self, item: Any, prefix: tuple[str, ...], query: Any, writer: int) -> None:
        """Data that a search caches during a write does not make later searches wrong."""
        key, value, meaning, expires = item
        options = _options(meaning, expires)
        if writer == 0:
            write = self.stores[0].put(*key, value, **options)
            self._both(write, lambda: self.stores[1].search(prefix, embedding=VECTORS[query], exact=True))
        else:
            search = self.stores[0].search(prefix, embedding=VECTORS[query], exact=True)
            self._both(search, lambda: self.stores[1].put(*key, value, **options))
        self._put(item, {})
        self.search_by_meaning(1 - writer, prefix, None, query, 10, 0, None, True, False)

    # Reads

    @rule(store=STORES, key=KEYS)
    def read(self, store: int, key: Key) -> None:
        item = self._call(store, "get_item", *key)
        assert item is None if key not in self.model.items else _same(item, self.model, key)
        assert self._call(store, "exists", *key) is (key in self.model.items)
        embeddings = self._call(store, "get_embeddings", *key)
        assert embeddings == (self.model.items[key].embeddings if key in self.model.items else [])

    @rule(
        store=STORES,
        prefix=PREFIXES,
        filter=FILTERS,
        limit=st.integers(0, 6),
        offset=st.integers(0, 3),
        only_here=st.booleans(),
    )
    def search_by_field(self, store: int, prefix: Any, filter: Any, limit: int, offset: int, only_here: bool) -> None:
        only_here = only_here and bool(prefix)
        among = self.model.within(prefix, filter, only_here=only_here)
        hits = self._call(store, "search", prefix, filter=filter, limit=limit, offset=offset, only_here=only_here)
        self._assert_hits(hits, self.model.newest(among)[offset : offset + limit])
        if not only_here:
            assert self._call(store, "count", prefix, filter=filter) == len(among)

    @rule(
        store=STORES,
        prefix=PREFIXES,
        filter=FILTERS,
        query=TEXTS,
        limit=st.integers(1, 30),
        min_score=st.sampled_from([None, 0.6]),
    )
    def search_by_word(
        self, store: int, prefix: Any, filter: Any, query: str, limit: int, min_score: float | None
    ) -> None:
        found = self.model.words(self.model.within(prefix, filter, only_here=False), query)[:limit]
        options = {"query": query, "way": "word", "filter": filter, "limit": limit, "min_score": min_score}
        self._assert_hits(self._call(store, "search", prefix, **options), _above(found, min_score))

    @rule(
        store=STORES,
        prefix=PREFIXES,
        filter=FILTERS,
        query=st.one_of(VECTOR, TEXTS),
        limit=st.one_of(st.integers(0, 3), st.integers(4, 30)),
        offset=st.integers(0, 3),
        min_score=st.sampled_from([None, None, 0.1, 0.9]),
        exact=st.booleans(),
        only_here=st.booleans(),
    )
    def search_by_meaning(
        self,
        store: int,
        prefix: Any,
        filter: Any,
        query: Any,
        limit: int,
        offset: int,
        min_score: float | None,
        exact: bool,
        only_here: bool,
    ) -> None:
        """A result marked as exact has the best hits; any other has as many hits, with their true scores."""
        asked, vector = (
            ({"query": query}, embed([query])[0])
            if isinstance(query, str)
            else ({"embedding": VECTORS[query]}, VECTORS[query])
        )
        only_here = only_here and bool(prefix)
        every = self.model.nearest(self.model.within(prefix, filter, only_here=only_here), vector)
        expected = _above(every, min_score)[offset : offset + limit]
        options = {"filter": filter, "limit": limit, "offset": offset, "min_score": min_score, "only_here": only_here}
        hits = self._call(store, "search", prefix, exact=exact, **asked, **options)
        if hits.exact:
            self._assert_hits(hits, expected)
            return
        assert not exact
        scores = {hit.key: hit.score for hit in every}
        keys = [(hit.item.namespace, hit.item.key) for hit in hits]
        assert len(set(keys)) == len(keys)
        assert len(keys) == len(expected) or min_score is not None
        self._assert_hits(
            hits, sorted((Found(key, scores[key]) for key in keys), key=lambda hit: (-hit.score, hit.key))
        )

    @rule(store=STORES, prefix=PREFIXES, filter=FILTERS, words=TEXTS, query=VECTOR, limit=st.integers(1, 30))
    def search_by_both(self, store: int, prefix: Any, filter: Any, words: str, query: Any, limit: int) -> None:
        found = self.model.hybrid(self.model.within(prefix, filter, only_here=False), words, VECTORS[query])[:limit]
        options = {"query": words, "embedding": VECTORS[query], "filter": filter, "limit": limit, "exact": True}
        self._assert_hits(self._call(store, "search", prefix, **options), found)

    @rule(store=STORES, prefixes=st.lists(PREFIXES, max_size=3), query=VECTOR, limit=st.integers(1, 4))
    def search_many(self, store: int, prefixes: Any, query: Any, limit: int) -> None:
        found = self._call(store, "search_many", prefixes, embedding=VECTORS[query], limit=limit, exact=True)
        assert len(found) == len(prefixes)
        for prefix, hits in zip(prefixes, found, strict=True):
            among = self.model.within(prefix, None, only_here=False)
            self._assert_hits(hits, self.model.nearest(among, VECTORS[query])[:limit])

    @rule(
        store=STORES,
        prefix=st.sampled_from([(), ("a",), ("*", "b"), ("a", "*")]),
        suffix=st.sampled_from([(), ("b",), ("*", "c"), ("*",)]),
        depth=st.sampled_from([None, 1, 2]),
        limit=st.integers(0, 4),
        offset=st.integers(0, 2),
    )
    def list_namespaces(self, store: int, prefix: Any, suffix: Any, depth: int | None, limit: int, offset: int) -> None:
        there = sorted({namespace for namespace, _ in self.model.items})
        fitting = [one[:depth] for one in there if begins_with(one, prefix) and ends_with(one, suffix)]
        options = {"suffix": suffix, "max_depth": depth, "limit": limit, "offset": offset}
        found = self._call(store, "list_namespaces", prefix, **options)
        assert found == list(dict.fromkeys(fitting))[offset : offset + limit]

    @rule(store=STORES, namespace=NAMESPACES)
    def list_keys(self, store: int, namespace: Any) -> None:
        expected = sorted(key for there, key in self.model.items if there == namespace)
        assert self._call(store, "list_keys", namespace) == expected

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        for store in (0, 1):
            found = self._call(store, "get_batch", list(self.model.items))
            assert found.keys() == self.model.items.keys()
            for key, item in found.items():
                assert _same(item, self.model, key)
            for query in range(0, len(VECTORS), 8):
                self.search_by_meaning(store, (), None, query, 100, 0, None, True, False)
            for word in WORDS:
                self.search_by_word(store, (), None, word, 100, None)
        self._assert_sound()

    # Details

    def _assert_hits(self, hits: Any, expected: Sequence[Found]) -> None:
        assert [(hit.item.namespace, hit.item.key) for hit in hits] == [hit.key for hit in expected]
        for hit, one in zip(hits, expected, strict=True):
            assert hit.score == (None if one.score is None else pytest.approx(one.score, abs=1e-9))
            assert _same(hit.item, self.model, one.key)

    def _assert_sound(self) -> None:
        """Each embedding belongs to an item and has signs; no other signs exist."""
        name = table_names("locus_")
        path_of_signs = "CONVERT(SUBSTRING_INDEX(owner, 0x00, 1) USING utf8mb4), SUBSTR(owner, LOCATE(0x00, owner) + 1)"
        vectors, signs = (
            set(self._sql(f"SELECT {scope}, item_key, number FROM {name[role]}{condition}"))
            for role, scope, condition in (
                ("vectors", "CONVERT(tenant USING utf8mb4), path", " WHERE removed = 0"),
                ("signs", path_of_signs, ""),
            )
        )
        assert vectors == signs
        items = set(self._sql(f"SELECT CONVERT(tenant USING utf8mb4), path, item_key FROM {name['items']}"))
        assert {row[:3] for row in vectors} <= items

    def _put(self, item: Any, metadata: dict[str, Any]) -> int:
        self.model.writes += 1
        return _put_one(self.model, item, metadata)

    def _put_all(self, items: Sequence[Any]) -> None:
        _put_all(self.model, items)

    def _call(self, store: int, method: str, *args: Any, **options: Any) -> Any:
        outcome = getattr(self.stores[store], method)(*args, **options)
        return self.runner.run(outcome) if store == 0 else outcome

    def _run(self, store: int, operation: Any) -> Any:
        outcome: Any = self.stores[store]._run_step(operation)
        return self.runner.run(outcome) if store == 0 else outcome

    def _both(self, awaited: Coroutine[Any, Any, Any], blocking: Callable[[], Any]) -> None:
        async def both() -> None:
            await asyncio.gather(awaited, asyncio.to_thread(blocking))

        self.runner.run(both())

    def _procedures(self, store: int) -> Any:
        return self.stores[store]._operations

    def _set_expiry(self, key: Key, when: str) -> None:
        items = table_names("locus_")["items"]
        namespace, name = key
        self._sql(f"UPDATE {items} SET expires_at = {when} WHERE path = %s AND item_key = %s", path_of(namespace), name)

    def _sql(self, text: str, *params: Any) -> tuple[Any, ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(text, params or None)
            return cursor.fetchall()


def _options(meaning: Any, expires: bool) -> dict[str, Any]:
    how, what = meaning
    embedded: dict[str, Any] = {"index": False} if how == "none" else {}
    if how == "given":
        embedded = {"embedding": VECTORS[what]}
    elif how == "several":
        embedded = {"embeddings": [VECTORS[one] for one in what]}
    return {**embedded, "ttl_s": TIME_TO_LIVE_S if expires else None}


def _put(item: Any, if_version: int | None = None) -> Put:
    (namespace, key), value, meaning, expires = item
    return Put(namespace, key, value, if_version=if_version, **_options(meaning, expires))


def _put_one(model: ModelMemories, item: Any, metadata: dict[str, Any]) -> int:
    key, value, (how, what), expires = item
    given = {"given": [what], "several": what}.get(how, ())
    embeddings = embed([value["t"]]) if how == "text" else [VECTORS[one] for one in given]
    return model.put(key, value, metadata, embeddings, expires)


def _put_all(model: ModelMemories, items: Sequence[Any]) -> None:
    """Record one write, so that all items have the same time."""
    model.writes += 1
    for item in {item[0]: item for item in items}.values():
        _put_one(model, item, {})


def _above(found: Sequence[Found], least: float | None) -> list[Found]:
    return [hit for hit in found if least is None or (hit.score or 0) >= least]


def _same(item: Any, model: ModelMemories, key: Key) -> bool:
    expected = model.items[key]
    expires = item.expires_at is not None
    return (item.namespace, item.key, item.value, item.metadata, item.version, expires) == (
        *key,
        expected.value,
        expected.metadata,
        expected.version,
        expected.expires,
    )


@pytest.mark.slow
def test_any_sequence_of_operations_from_two_stores_finds_what_a_search_over_a_dict_finds(
    database: str,
    make_config: MakeConfig,
    proxy: WireProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", SERVER_CANDIDATES)
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES_PER_HIT", 1)
    monkeypatch.setattr(nearest, "RANKED_MORE", 0)
    monkeypatch.setattr(nearest, "RANKED_PER_HIT", 1)
    monkeypatch.setattr(nearest, "FILTERED_PER_HIT", 1)
    monkeypatch.setattr(nearest, "FILTERED_MORE", 0)
    connection = connect(make_config(), database)
    through = {"host": "127.0.0.1", "port": proxy.port, "ssl_mode": "DISABLED"}
    awaited, blocking = (make_config(driver=driver, **through) for driver in ("mysql-connector", "pymysql"))
    options: dict[str, Any] = {"dims": DIMS, "embed": embed}
    with asyncio.Runner() as runner, SyncMemoryStore(blocking, vector_cache_bytes=CACHE_BYTES[1], **options) as second:
        first = MemoryStore(awaited, vector_cache_bytes=CACHE_BYTES[0], **options)
        runner.run(first.count())  # after a first connection, failed connection attempts are retried
        second.count()

        class Machine(Memories):
            """The machine of this test's schema."""

        Machine.connection, Machine.stores, Machine.runner, Machine.proxy = connection, (first, second), runner, proxy
        try:
            run_state_machine_as_test(Machine, settings=settings(settings.get_profile("server")))
        finally:
            runner.run(first.close())
            connection.close()
