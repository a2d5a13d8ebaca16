"""Encrypted transcripts: seqs of items without ids, folds, and searches."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from locus_mysql import Database, Encryption, reencrypt
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey, Write
from locus_mysql.families.transcripts.store import TranscriptStore
from locus_mysql.inspection.inspector import Inspector

from ..conftest import MakeConfig
from .conftest import keys

KEY = TranscriptKey("kind", "collection", "t")


async def test_concurrent_writers_of_items_without_ids_bind_each_to_its_seq(make_config: MakeConfig) -> None:
    stores = [TranscriptStore(make_config(encryption=keys())) for _ in range(3)]

    async def write(store: TranscriptStore, writer: int) -> None:
        for turn in range(8):
            await store.append(KEY, [NewItem([writer, turn, index]) for index in range(2)])

    await asyncio.gather(*(write(store, writer) for writer, store in enumerate(stores)))
    read: Any = await stores[0].read(KEY)
    assert [item.seq for item in read.items] == list(range(1, 49))
    for writer in range(3):
        expected = [[writer, turn, index] for turn in range(8) for index in range(2)]
        assert [item.content for item in read.items if item.content[0] == writer] == expected
    for store in stores:
        await store.close()


async def test_seqs_that_are_known_are_right_after_deletions_and_other_writes(make_config: MakeConfig) -> None:
    one, other = (TranscriptStore(make_config(encryption=keys())) for _ in range(2))
    await one.append(KEY, [NewItem(1), NewItem(2)])
    await other.append(KEY, [NewItem(3, "c")])
    await one.append(KEY, [NewItem(4)])
    await other.delete(KEY)
    await one.append(KEY, [NewItem(5)])
    await one.clear(KEY)
    await other.append(KEY, [NewItem(6), NewItem(7, "a"), NewItem(8)])
    await one.append(KEY, [NewItem(9), NewItem(7, "a"), NewItem(10)])
    read: Any = await other.read(KEY)
    assert [(item.seq, item.content) for item in read.items] == [(2, 6), (3, 7), (4, 8), (5, 9), (6, 10)]
    for store in (one, other):
        await store.close()


async def test_a_state_that_a_fold_keeps_is_encrypted_with_the_active_key(make_config: MakeConfig) -> None:
    config = make_config(encryption=keys("2026-10"))
    old = TranscriptStore(config)
    await old.append(KEY, header=Header({"n": 1}, tag="a"))
    new = TranscriptStore(make_config(encryption=keys("2026-11")))
    assert await new.get(KEY)
    async with Database(make_config(encryption=keys("2026-11"))) as database:
        await reencrypt(database, family="transcripts")
    await new.append(KEY, [NewItem(1, "x")], fold=lambda state, items: state)
    await new.write([Write(KEY, [NewItem(2, "y")], fold=lambda state, items: state, tag="b")])
    only_new = TranscriptStore(make_config(encryption=keys("2026-11", "2026-11")))
    transcript: Any = await only_new.get(KEY)
    assert (transcript.header.state, transcript.header.tag) == ({"n": 1}, "b")
    for store in (old, new, only_new):
        await store.close()


async def test_sizes_are_those_of_the_contents_after_each_encryption(make_config: MakeConfig, run_sql: Any) -> None:
    ids = ["2026-10", "a-much-longer-id-of-a-key", "k"]
    known = {key_id: secrets.token_bytes(32) for key_id in ids}
    configs = [make_config()]
    configs += [make_config(encryption=Encryption(keys=known, active=active)) for active in ids]
    other = KEY._replace(name="u")
    async with TranscriptStore(configs[0]) as store:
        await store.append(KEY, [NewItem("é" * 100), NewItem({"n": 1}, "a"), NewItem("x" * 5_000)])
        await store.append(other, [NewItem(1)], header=Header({"s": 1}))
    sizes = (
        f"SELECT t.name, t.size_bytes, SUM(LENGTH(i.content)) FROM {configs[0].database}.locus_transcripts t"
        f" JOIN {configs[0].database}.locus_transcript_items i USING (tenant, sid) GROUP BY 1, 2"
    )
    before: Any = None
    for config in configs[1:]:
        async with Database(config) as database:
            (counts,) = await reencrypt(database, family="transcripts")
        assert counts.replaced == 5
        rows = run_sql(sizes)
        assert [int(stored) for _, stored, _ in rows] == [int(counted) for _, _, counted in rows]
        assert rows != before
        before = rows
    async with TranscriptStore(configs[-1]) as store:
        await store.clear(KEY)
        transcript: Any = await store.get(KEY)
    assert transcript.size_bytes == 0


async def test_words_are_found_by_a_program_with_keys(make_config: MakeConfig) -> None:
    config = make_config(encryption=keys())
    store = TranscriptStore(config)
    await store.append(KEY, [NewItem({"role": "user", "content": "The harbour at noon"})])
    async with Inspector(config) as inspector:
        (hit,) = await inspector.search("harbour", family="transcripts")
        assert "harbour" in hit.snippet
    await store.close()
