"""Searches by word find and rank alike in all families, whatever other tenants have stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from locus_mysql import CheckpointStore, MemoryStore, MySQLConfig, SyncCheckpointStore, SyncMemoryStore
from locus_mysql.dialect.words import FEW_TEXTS
from locus_mysql.errors import SchemaMismatch
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.memory import Put

from ...either_side import AnyStore
from ...waiting import until
from ..conftest import ONE_OF_EACH, MakeConfig

PARSERS = ("default", "ngram")
FAMILIES = ("dicts", "memories")


class Texts:
    """Texts by name in a store of one family.

    Args:
        store: The store.
    """

    def __init__(self, store: AnyStore) -> None:
        self.store = store

    async def add(self, **texts: str) -> None:
        for name, text in texts.items():
            if isinstance(self.store.store, MemoryStore | SyncMemoryStore):
                await self.store.put(("n",), name, text)
            else:
                await self.store.save(name, {"messages": [text]})

    async def find(self, query: str) -> dict[str, float]:
        """Return the scores of the hits, best first."""
        if isinstance(self.store.store, MemoryStore | SyncMemoryStore):
            return {hit.item.key: hit.score for hit in await self.store.search(query=query, limit=50)}
        return {hit["thread_id"]: hit["score"] for hit in await self.store.search(query, 50)}


@asynccontextmanager
async def texts_of(family: str, side: str, config: MySQLConfig) -> AsyncIterator[Texts]:
    driver, _, way = side.rpartition("-")
    kinds: dict[tuple[str, str], Callable[[MySQLConfig], Any]] = {
        ("memories", "async"): MemoryStore,
        ("memories", "sync"): SyncMemoryStore,
        ("dicts", "async"): CheckpointStore,
        ("dicts", "sync"): SyncCheckpointStore,
    }
    store = AnyStore(kinds[family, way](config.model_copy(update={"driver": driver})))
    try:
        yield Texts(store)
    finally:
        await store.close()


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "among others"])
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_what_scores_as_containing_a_part_contains_it(
    make_config: MakeConfig, side: str, family: str, parser: str, alone: bool
) -> None:
    async with texts_of(family, side, make_config(search_parser=parser)) as texts:
        if not alone:
            async with texts_of(family, side, make_config(search_parser=parser, tenant="other")) as others:
                await others.add(foreign="Miami Paris Rome 東京タワー order 4711 state of the art")
        await texts.add(
            m="We met in Miami",
            p="Paris in the spring",
            home="letters from home",
            tower="東京タワー",
            tokyo="東京",
            first="the order\u20134711 was sent",
            second="the order\u20139999 was sent",
            art="the state of the art",
            other="art of the state",
        )
        assert await texts.find("Miami") == {"m": 1.0}
        assert await texts.find("paris") == {"p": 1.0}
        assert await texts.find("Rome") == {}
        assert await texts.find("東京タワー") == {"tower": 1.0}
        assert set(await texts.find("東京")) == ({"tokyo", "tower"} if parser == "ngram" else set())
        found = await texts.find("order\u20134711")
        assert list(found) == ["first", "second"]
        assert found["first"] == 1.0 > found["second"]
        assert await texts.find('"order 4711"') == {"first": 1.0}
        assert await texts.find('"state of the art"') == {"art": 1.0}
        assert set(await texts.find("the")) == {"p", "first", "second", "art", "other"}


@pytest.mark.parametrize("rows", [1, FEW_TEXTS + 1], ids=["few texts", "many texts"])
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_words_that_no_index_contains_are_not_found_whatever_others_store(
    make_config: MakeConfig, side: str, parser: str, rows: int
) -> None:
    digest, persian = "0af" * 29, "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    found = []
    for alone in (True, False):
        config = make_config(search_parser=parser, table_prefix=f"{alone}_".lower())
        if not alone:
            async with texts_of("memories", side, config.model_copy(update={"tenant": "other"})) as others:
                await others.add(foreign="tea")
        async with texts_of("memories", side, config) as texts:
            await texts.store.put_batch([Put(("n",), f"{n}", "at least tea") for n in range(rows)])
            await texts.add(digest=digest, persian=f"{persian} tea", short="I don't 7")
            found.append([await texts.find(query) for query in (digest, persian, "don't", "7", "t")])
    assert found[0] == found[1]
    digests, persians, donts, *short = found[0]
    assert digests == ({} if parser == "default" else {"digest": 1.0})
    assert list(persians) == ["persian"]
    assert list(donts) == ["short"]
    assert short == [{}, {}]


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_pair_of_letters_is_found_with_the_parser_ngram(make_config: MakeConfig, family: str) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    async with texts_of(family, ONE_OF_EACH[0], make_config(search_parser="ngram")) as texts:
        await texts.add(**{first: " ".join(f"{first}{second}" for second in letters) for first in letters})
        for first in letters:
            pairs = [f"{first}{second}" for second in letters]
            for some in (pairs[:13], pairs[13:]):
                assert await texts.find(" ".join(some)) == {first: 1.0}


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_rare_words_weigh_more_and_all_families_rank_alike(make_config: MakeConfig, side: str) -> None:
    texts = {f"t{n}": f"She does a thing with number{n}" for n in range(5)}
    texts["tea"] = "Ada likes to drink tea"
    found = []
    for family in FAMILIES:
        async with texts_of(family, side, make_config()) as store:
            await store.add(**texts)
            found.append(await store.find("What does she drink?"))
    assert next(iter(found[0])) == "tea"
    assert found[0] == found[1]
    assert len(found[0]) == 6
    async with Inspector(make_config()) as inspector:
        hits = {hit.thread_id: hit.score for hit in await inspector.search("What does she drink?", family="dicts")}
        items = await inspector.search_memories("What does she drink?", limit=20)
    assert hits == found[0] == {hit.item.key: hit.score for hit in items}


async def test_an_inspector_ranks_texts_that_are_not_indexed_yet_with_the_others(make_config: MakeConfig) -> None:
    for family in FAMILIES:
        async with texts_of(family, ONE_OF_EACH[0], make_config()) as store, Inspector(make_config()) as inspector:
            await store.add(a="green tea", b="green apples")
            expected = None
            for indexed in (False, True):
                if family == "dicts":
                    hits = await inspector.search("green tea", family=family)
                    found = {hit.thread_id: hit.score for hit in hits}
                else:
                    items = await inspector.search_memories("green tea", limit=20)
                    found = {hit.item.key: hit.score for hit in items}
                assert list(found) == ["a", "b"]
                assert found["a"] == 1.0
                assert expected in (None, found), indexed
                expected = found
                assert await store.find("green tea") == found


@pytest.mark.parametrize(("made", "opened"), [("default", "ngram"), ("ngram", "default")])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_a_parser_that_contradicts_the_index_is_refused_and_the_advice_works(
    make_config: MakeConfig, run_sql: Callable[..., Any], database: str, side: str, family: str, made: str, opened: str
) -> None:
    async with texts_of(family, side, make_config(search_parser=made)) as texts:
        await texts.add(m="Miami")
        assert await texts.find("Miami") == {"m": 1.0}
    async with texts_of(family, side, make_config(search_parser=opened)) as texts:
        with pytest.raises(SchemaMismatch, match=f"Set search_parser='{made}'") as refused:
            await texts.find("Miami")
    advice = str(refused.value).split("replace the index: ")[1]
    run_sql(f"USE `{database}`")
    for statement in advice.split(";"):
        run_sql(statement)
    async with texts_of(family, side, make_config(search_parser=opened)) as texts:
        assert await texts.find("Miami") == {"m": 1.0}


async def found_in_each(texts: Texts, query: str, rows: int) -> bool:
    return await texts.find(query) == {f"mine{n}": 1.0 for n in range(rows)}


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_the_texts_of_other_tenants_do_not_count_towards_the_limit_of_a_search(
    own_config: MakeConfig, own_sql: Callable[..., Any], side: str, parser: str
) -> None:
    mine, theirs = own_config(search_parser=parser), own_config(search_parser=parser, tenant="many")
    own_sql("SET GLOBAL innodb_ft_result_cache_limit = 1000000")
    try:
        for family, rows in (("dicts", 1), ("memories", 1)):
            async with texts_of(family, side, theirs) as others:
                await others.add(seed="coffee is common")
            async with texts_of(family, side, mine) as texts:
                await texts.add(**{f"mine{n}": "our coffee is common" for n in range(rows)})
                table = "store_checkpoints" if family == "dicts" else "memory_items"
                columns = (
                    "thread_id, seq, continues, token, payload, seal, created_at, search_text"
                    if family == "dicts"
                    else "path, item_key, value, version, created_at, updated_at, seal, search_text"
                )
                numbered = {
                    "dicts": "'x', n, 0, UNHEX(REPEAT('0', 32)), '', 0, UTC_TIMESTAMP(6), 'coffee is common'",
                    "memories": "'x', n, '1', 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 0, 'coffee is common'",
                }[family]
                own_sql(
                    f"INSERT INTO `{mine.database}`.`{mine.table_prefix}{table}` (tenant, {columns}) "
                    "WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000) "
                    "SELECT /*+ SET_VAR(cte_max_recursion_depth = 20000) */ "
                    f"'many', {numbered} FROM numbers"
                )
                for query in ("coffee", "coffee common", '"coffee is"'):
                    # InnoDB leaves texts out for moments while it writes the words of 20,000 rows to disk.
                    await until(partial(found_in_each, texts, query, rows), f"{query} is found in every text")
    finally:
        own_sql("SET GLOBAL innodb_ft_result_cache_limit = DEFAULT")
