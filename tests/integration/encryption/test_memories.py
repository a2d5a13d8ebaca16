"""Encrypted memories: searches by meaning, filters, embedded texts, and what is refused."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from locus_mysql import Database, SyncMemoryStore, reencrypt
from locus_mysql.cli.main import main
from locus_mysql.errors import InvalidInput
from locus_mysql.integrations.google_adk.memories import AdkMemoryService
from locus_mysql.memory import HashingEmbedder, Put

from ..commands import dsn_of
from ..conftest import MakeConfig
from .conftest import RunSQL, keys


def vectors(count: int, dims: int = 24) -> list[list[float]]:
    """Return embeddings in different directions."""
    return [[float((number * 31 + index * index * 17) % 23 - 11.5) for index in range(dims)] for number in range(count)]


def filled(store: SyncMemoryStore, count: int) -> SyncMemoryStore:
    store.put_batch(
        [
            Put(("n", str(number % 3)), str(number), {"n": number}, {"even": number % 2 == 0}, embedding=vector)
            for number, vector in enumerate(vectors(count))
        ]
    )
    return store


@pytest.mark.parametrize("cache_bytes", [0, 10_000_000])
def test_searches_by_meaning_return_what_they_do_without_encryption(make_config: MakeConfig, cache_bytes: int) -> None:
    options: dict[str, Any] = {"dims": 24, "vector_cache_bytes": cache_bytes}
    clear = filled(SyncMemoryStore(make_config(driver="pymysql", table_prefix="clear_"), **options), 60)
    sealed = filled(SyncMemoryStore(make_config(driver="pymysql", encryption=keys()), **options), 60)
    asked: list[dict[str, Any]] = [{}, {"metadata_filter": {"even": True}}, {"min_score": 0.2}, {"offset": 5}]
    for vector in vectors(63)[60:]:
        for more in asked:
            for _ in range(2):  # the second search uses the cache
                hits = sealed.search(("n",), embedding=vector, limit=7, **more)
                expected = clear.search(("n",), embedding=vector, limit=7, exact=True, **more)
                assert hits.exact
                assert [hit.item.key for hit in hits] == [hit.item.key for hit in expected]
                assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected])
    other = SyncMemoryStore(make_config(driver="pymysql", encryption=keys()), **options)
    nearest = vectors(61)[60]
    other.put(("n", "0"), "new", 1, embedding=nearest)
    other.delete(("n", "0"), "0")
    (hit,) = sealed.search(("n",), embedding=nearest, limit=1)
    assert hit.item.key == "new"
    for store in (clear, sealed, other):
        store.close()


def test_no_signs_are_stored_and_those_from_before_are_removed(
    make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    config = make_config(driver="pymysql", search=False)
    with SyncMemoryStore(config, dims=24) as clear:
        filled(clear, 10)
    count = f"SELECT COUNT(*) FROM {database}.locus_memory_signs"
    assert run_sql(count) == ((10,),)

    async def rotate(**options: Any) -> Any:
        async with Database(make_config(encryption=keys())) as opened:
            (found,) = await reencrypt(opened, family="memories", **options)
            return found

    assert asyncio.run(rotate(dry_run=True)).rows == {None: 30}
    asyncio.run(rotate())
    assert run_sql(count) == ((0,),)
    with SyncMemoryStore(make_config(driver="pymysql", encryption=keys()), dims=24) as sealed:
        assert len(sealed.search(("n",), embedding=vectors(1)[0], limit=20)) == 10
        filled(sealed, 12)
        assert run_sql(count) == ((0,),)
    assert asyncio.run(rotate(dry_run=True)).rows == {"2026-11": 24}


def test_filters_on_values_and_searches_by_word_are_refused(make_config: MakeConfig) -> None:
    with SyncMemoryStore(make_config(driver="pymysql", encryption=keys()), dims=24) as store:
        store.put(("a",), "k", {"kind": "fact"}, metadata={"kind": "fact"})
        calls: list[Callable[[], object]] = [
            lambda: store.search(("a",), filter={"kind": "fact"}),
            lambda: store.count(("a",), filter={"kind": "fact"}),
        ]
        for call in calls:
            with pytest.raises(InvalidInput, match="Filters on values are off, as encryption= is set"):
                call()
        with pytest.raises(InvalidInput, match="Search by word is off, as encryption= is set"):
            store.search(("a",), query="fact")
        assert [hit.item.key for hit in store.search(("a",), metadata_filter={"kind": "fact"})] == ["k"]
        assert store.count(("a",)) == 1


def test_a_text_is_embedded_once_and_no_column_shows_that_texts_are_equal(
    make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[float(len(text)), 1.0] for text in texts]

    config = make_config(driver="pymysql", encryption=keys())
    with SyncMemoryStore(config, dims=2, embed=embed) as store:
        store.put(("a",), "one", "the same text")
        store.put(("a",), "two", "the same text")
        store.put(("a",), "one", "the same text", metadata={"again": True})
        assert embedded == ["the same text"] * 2
        (hit, _) = store.search(("a",), query="the same text", limit=2)
        assert hit.item.value == "the same text"
    for table, column in (("items", "value"), ("vectors", "embedding")):
        assert len(set(run_sql(f"SELECT {column} FROM {database}.locus_memory_{table}"))) == 2


def test_an_embedding_in_clear_text_that_looks_encrypted_is_exported_and_encrypted(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first bytes are those of bytes that the key ``ab`` encrypted."""
    values = list(array("f", b"\xfe\x02ab" + bytes(36) + b"\x00\x00\x80?"))
    config = make_config(driver="pymysql")
    with SyncMemoryStore(config, dims=11) as clear:
        clear.put(("n",), "k", 1, embedding=values)
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(make_config()))
    file = tmp_path / "items.jsonl"
    assert main(["export", str(file), "--family", "memories"]) == 0
    assert main(["import", str(file), "--table-prefix", "other_"]) == 0
    with SyncMemoryStore(config.model_copy(update={"table_prefix": "other_"}), dims=11) as copy:
        assert copy.get_embeddings(("n",), "k") == [values]

    async def encrypt() -> list[Any]:
        async with Database(make_config(encryption=keys())) as opened:
            return await reencrypt(opened, family="memories")

    assert [(counts.replaced, counts.damaged) for counts in asyncio.run(encrypt())] == [(2, ())]
    with SyncMemoryStore(make_config(driver="pymysql", encryption=keys()), dims=11) as sealed:
        assert sealed.get_embeddings(("n",), "k") == [values]


def test_a_text_is_not_embedded_again_after_a_rotation(make_config: MakeConfig) -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[float(len(text)), 1.0] for text in texts]

    for encryption in (None, keys("2026-10"), keys("2026-11", "2026-11")):
        config = make_config(driver="pymysql", encryption=encryption, search=False)
        with SyncMemoryStore(config, dims=2, embed=embed) as store:
            store.put(("a",), "k", "a text")
            assert embedded == ["a text"]
            assert len(store.search(("a",), query="a text", limit=1)) == 1
            embedded[1:] = []  # the query

        async def rotate(active: str) -> None:
            async with Database(make_config(encryption=keys(active))) as opened:
                await reencrypt(opened, family="memories")

        asyncio.run(rotate("2026-10" if encryption is None else "2026-11"))


async def test_memories_of_google_adk_are_deleted_by_their_ids(make_config: MakeConfig) -> None:
    ada: dict[str, Any] = {"app_name": "shop", "user_id": "ada"}
    embedder = HashingEmbedder(dims=64)
    service = AdkMemoryService(make_config(encryption=keys()), dims=64, embed=embedder)
    for name in ("m1", "m2"):
        content = types.Content(role="user", parts=[types.Part(text=f"A blue parcel {name}")])
        await service.add_memory(**ada, memories=[MemoryEntry(id=name, content=content)])
    await service.delete_memory(**ada, memory_id="m1")
    found = await service.search_memory(**ada, query="blue parcel")
    assert [one.id for one in found.memories] == ["m2"]
    await service.close()
