"""Embeddings of two models are never compared, and items are embedded again when the model changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import Encryption, SyncMemoryStore
from locus_mysql.cli.main import main
from locus_mysql.families.memories.family import MEMORIES
from locus_mysql.families.memories.store import embed_page
from locus_mysql.memory import Put

from ....either_side import AnyStore
from ...commands import dsn_of
from ...conftest import EACH_WAY, MakeConfig
from .conftest import Make

HERE = ("notes", "ada")
KEYS = {"keys": {"k": b"k" * 32}, "active": "k"}

both_sides = pytest.mark.parametrize("side", EACH_WAY)


class Model:
    """Embeds a text by the number of its letters, at an angle of its own, and counts the texts."""

    def __init__(self, name: str, turn: int) -> None:
        self.model, self.turn = name, turn
        self.embedded: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        axes = [[float(len(text)), 1.0, 0.0] for text in texts]
        return [[*axis[self.turn :], *axis[: self.turn]] for axis in axes]


async def embed_all(store: Any, namespace: tuple[str, ...] = (), **options: Any) -> list[int]:
    """Embed all pages of a store as the command does; return the numbers of embedded items."""
    options = {"tenant": store.store.config.tenant, "dry_run": False, **options}
    found, after = [], None
    while True:
        page = await embed_page(store.store, namespace, after, **options)
        found.append(page.embedded)
        after = page.last
        if after is None:
            return found


async def keys_of(store: Any, **asked: Any) -> list[str]:
    return [hit.item.key for hit in await store.search(**asked)]


@both_sides
@pytest.mark.parametrize("encryption", [None, Encryption(**KEYS)], ids=["clear", "encrypted"])
@pytest.mark.parametrize("cached", [False, True])
async def test_a_search_leaves_out_the_embeddings_of_another_model(
    make_memories: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    encryption: Encryption | None,
    cached: bool,
) -> None:
    options = {"dims": 3, "encryption": encryption, "search": encryption is None}
    old, new = make_memories(embed=Model("old", 0), **options), make_memories(embed=Model("new", 1), **options)
    unnamed = make_memories(**options)
    await old.put_batch([Put(HERE, f"old {n}", "x" * n) for n in range(1, 5)])
    await new.put_batch([Put(HERE, f"new {n}", "x" * n) for n in range(1, 4)])
    await unnamed.put(HERE, "given", "x", embedding=[1, 1, 1])
    for _ in range(1 + 2 * cached):  # a large range is searched in memory from the second time on
        for store, names in ((old, "old"), (new, "new"), (unnamed, "given")):
            found = await store.search(HERE, embedding=[1, 1, 1], exact=cached, limit=10)
            assert {hit.item.key.split()[0] for hit in found} == {names}
            assert len(found) == {"old": 4, "new": 3, "given": 1}[names]
    reports = [one.getMessage() for one in caplog.records if "left out" in one.getMessage()]
    assert len(reports) == 3  # each store once
    assert "not of the model 'new'. Run `locus-mysql embed`" in reports[1]
    # What another store changes from one model to the other leaves the cached range of the first.
    await new.put(HERE, "old 1", "x")
    assert "old 1" in await keys_of(new, namespace_prefix=HERE, embedding=[1, 1, 1])
    assert "old 1" not in await keys_of(old, namespace_prefix=HERE, embedding=[1, 1, 1])


@both_sides
async def test_an_item_that_is_put_again_is_embedded_by_the_new_model(make_memories: Make) -> None:
    models = Model("old", 0), Model("new", 1)
    for model in (*models, models[1]):
        store = make_memories(dims=3, embed=model)
        await store.put(HERE, "k", "tea")
        assert await store.get_embeddings(HERE, "k") == model(["tea"])
    assert [model.embedded for model in models] == [["tea"] * 2, ["tea"] * 3]  # of these, one and two by this test


@both_sides
async def test_all_items_of_another_model_or_without_one_are_embedded(
    make_memories: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_mysql.families.memories.operations.EMBEDDED_AT_ONCE", 4)
    plain, old = make_memories(dims=3), make_memories(dims=3, embed=Model("old", 0))
    await plain.put_batch([Put(HERE, f"plain {n}", {"a": "x" * n, "b": "y"}) for n in range(1, 6)])
    await plain.put(HERE, "expiring", "zz", ttl_s=600)
    await plain.put(HERE, "named", {"a": "word", "b": "other"}, index=["a"])
    await plain.put(HERE, "own text", {"a": "word"}, text="spoken")
    await plain.put(HERE, "no text", 5)
    await plain.put(HERE, "not embedded", "secret", index=False)
    await plain.put(HERE, "given", "mine", embedding=[0, 0, 1])
    await old.put_batch([Put((*HERE, "below"), f"old {n}", "x" * n) for n in range(1, 4)])
    await old.put(("other",), "old", "elsewhere")
    model = Model("new", 1)
    store = make_memories(dims=3, embed=model)
    counted = await embed_all(store, HERE, dry_run=True)
    assert model.embedded == []
    assert sum(await embed_all(store, HERE)) == sum(counted) == 11
    assert sorted(model.embedded) == sorted(
        [*("x" * n + "\ny" for n in range(1, 6)), "zz", "word", "spoken", *("x" * n for n in range(1, 4))]
    )
    assert await store.get_embeddings(HERE, "not embedded") == []
    assert await store.get_embeddings(HERE, "given") == [[0, 0, 1]]
    found = await keys_of(store, namespace_prefix=HERE, embedding=[1, 0, 3], limit=100)
    assert len(found) == 11
    assert {"not embedded", "given", "no text"}.isdisjoint(found)
    assert (await store.get_item(HERE, "plain 1")).version == 1
    assert sum(await embed_all(store, HERE)) == 0
    assert sum(await embed_all(store)) == 1


@both_sides
async def test_embedding_goes_on_where_it_was_stopped_and_leaves_what_changes_meanwhile(
    make_memories: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_mysql.families.memories.operations.EMBEDDED_AT_ONCE", 4)
    plain = make_memories(dims=3)
    await plain.put_batch([Put(HERE, f"{n:02}", "x" * n) for n in range(1, 13)])
    model, calls = Model("new", 1), []

    def embed(texts: list[str]) -> Any:
        calls.append(texts)
        if len(calls) == 2:
            raise OSError("The network is gone.")
        return model(texts)

    store = make_memories(dims=3, embed=embed, model="new")
    with pytest.raises(OSError, match="network"):
        await embed_all(store)
    assert await embed_all(store) == [0, 4, 4, 0]
    assert len(model.embedded) == 12
    other = make_memories(dims=3, model="other")

    async def put_meanwhile(texts: list[str]) -> Any:
        await asyncio.to_thread(lambda: asyncio.run(_put_in_loop()))
        return Model("newest", 0)(texts)

    async def _put_in_loop() -> None:
        await changing.delete(HERE, "03")
        await changing.put(HERE, "03", "changed", embedding=[1, 2, 3])
        await changing.close()

    changing = make_memories(dims=3, model="other")
    newest = make_memories(dims=3, embed=put_meanwhile, model="newest")
    page = await embed_page(newest.store, (), None, tenant=newest.store.config.tenant, dry_run=False)
    assert (page.examined, page.embedded, page.changed) == (4, 3, 1)
    assert await keys_of(other, embedding=[1, 2, 3]) == ["03"]
    assert await newest.get(HERE, "03") == "changed"


@both_sides
async def test_an_embedding_of_zeros_is_ranked_by_metrics_that_can(
    make_memories: Make, caplog: pytest.LogCaptureFixture
) -> None:
    zeros, near, far = [0.0, 0.0, 0.0], [1.0, 2.0, 2.0], [-1.0, -2.0, -2.0]
    for metric, scores in (("dot", [9, 0, -9]), ("euclidean", [1, 1 / 4, 1 / 7])):
        for encryption in (None, Encryption(**KEYS)):
            tenant = f"{metric} {encryption is None}"
            options = {"encryption": encryption, "search": encryption is None, "tenant": tenant}
            store = make_memories(dims=3, metric=metric, **options)
            await store.put(HERE, "zeros", 1, embedding=zeros)
            await store.put_batch([Put(HERE, "near", 2, embedding=near), Put(HERE, "far", 3, embedding=far)])
            for _ in range(2):
                found = await store.search(HERE, embedding=near, exact=True)
                assert [(hit.item.key, hit.score) for hit in found] == list(
                    zip(("near", "zeros", "far"), scores, strict=True)
                )
            assert len(await store.search(HERE, embedding=zeros)) == 3
            cosine = make_memories(dims=3, **options)  # of the cosine, they have no score
            assert await keys_of(cosine, namespace_prefix=HERE, embedding=near, exact=True) == ["near", "far"]
            assert await keys_of(cosine, namespace_prefix=HERE, embedding=near) == ["near", "far"]

    def embed(texts: list[str]) -> list[list[float]]:
        return [zeros if text == "nothing" else near for text in texts]

    store = make_memories(dims=3, embed=embed, model="m")
    await store.put_batch([Put(HERE, "a", "nothing"), Put(HERE, "b", "tea"), Put(HERE, "c", 1, embedding=zeros)])
    await store.put(HERE, "d", "nothing")
    assert await store.list_keys(HERE) == ["a", "b", "c", "d"]
    assert await keys_of(store, namespace_prefix=HERE, query="tea") == ["b"]
    assert sum("all zeros" in one.getMessage() for one in caplog.records) == 3


@both_sides
async def test_health_counts_the_embeddings_of_each_model(make_memories: Make) -> None:
    for encryption in (None, Encryption(**KEYS)):
        options = {"dims": 3, "encryption": encryption, "search": encryption is None, "tenant": str(encryption is None)}
        store = make_memories(embed=Model("old", 0), **options)
        await store.put_batch([Put(HERE, str(n), "x") for n in range(3)])
        operation = store.store.database.asynchronous.run
        maintenance, tenant = MEMORIES.maintenance(store.store.config), options["tenant"]
        assert [str(one) for one in await operation(maintenance.stored(tenant))] == ["3 items"]
        await make_memories(**options).put(HERE, "given", 1, embedding=[1, 1, 1])
        items, old, unnamed = [str(one) for one in await operation(maintenance.stored(tenant))]
        assert (items, unnamed) == ("4 items", "1 embedding of an unnamed model")
        assert old.startswith("3 embeddings of model ")


async def test_a_blocking_store_calls_a_client_that_belongs_to_an_event_loop(make_memories: Make) -> None:
    loops: set[int] = set()

    async def embed(texts: list[str]) -> list[list[float]]:
        loops.add(id(asyncio.get_running_loop()))
        return [[1.0, 0.0, 0.0] for _ in texts]

    store = make_memories(dims=3, embed=embed, model="m")
    for number in range(3):
        await store.put(HERE, "k", f"text {number}")
        assert await keys_of(store, query=f"query {number}") == ["k"]
    assert len(loops) == 1


@both_sides
async def test_encrypted_items_are_embedded_again(make_memories: Make) -> None:
    options = {"dims": 3, "encryption": Encryption(**KEYS), "search": False}
    await make_memories(**options).put(HERE, "plain", "xx")
    await make_memories(embed=Model("old", 0), **options).put(HERE, "old", "xxx")
    model = Model("new", 1)
    store = make_memories(embed=model, **options)
    assert await embed_all(store) == [2]
    assert sorted(await keys_of(store, query="x")) == ["old", "plain"]
    assert await embed_all(store) == [0]
    await store.put(HERE, "old", "xxx")
    assert sorted(model.embedded) == ["x", "xx", "xxx"]


def test_copied_items_keep_their_model_and_what_is_embedded(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(model: Model, tenant: str) -> list[str]:
        with SyncMemoryStore(make_config(driver="pymysql", tenant=tenant), dims=3, embed=model) as store:
            return [hit.item.key for hit in store.search(query="x")]

    with SyncMemoryStore(make_config(driver="pymysql"), dims=3, embed=Model("old", 0)) as old:
        old.put_batch([Put(HERE, "k", "tea"), Put(HERE, "none", "secret", index=False)])
    file = str(tmp_path / "items.jsonl")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(make_config()))
    assert main(["export", file, "--family", "memories"]) == 0
    assert main(["import", file, "--tenant", "copy"]) == 0
    model = Model("new", 1)
    assert found(model, "copy") == []
    assert found(Model("old", 0), "copy") == ["k"]
    with SyncMemoryStore(make_config(driver="pymysql", tenant="copy"), dims=3, embed=model) as new:
        assert asyncio.run(embed_all(AnyStore(new))) == [1]
    assert model.embedded == ["x", "tea"]
