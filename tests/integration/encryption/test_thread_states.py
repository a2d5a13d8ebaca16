"""Encrypted states of threads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from locus_mysql import Database, Encryption, MySQLConfig, reencrypt
from locus_mysql.errors import (
    EncryptionError,
    InvalidInput,
)
from locus_mysql.families import reencryption

from ...either_side import AnyStore
from ..conftest import MakeConfig, OpenStore
from .conftest import MARKER, RunSQL, keys


def state(turns: int) -> dict[str, Any]:
    """Return a state of several kilobytes, which a later one continues as a delta."""
    messages = [{"role": "user", "content": f"{MARKER} {turn} " + f"word{turn} " * 90} for turn in range(turns)]
    return {"messages": [{"role": "system", "content": f"{MARKER} " * 300}, *messages], "step": turns}


async def fill(store: AnyStore, thread_id: str = "t", turns: int = 8, first: int = 1) -> None:
    for turn in range(first, turns + 1):
        await store.save(thread_id, state(turn), str(turn), metadata={"turn": turn})


class TestStored:
    async def test_a_cached_state_does_not_hide_that_its_checkpoint_was_replaced_in_clear_text(
        self, open_store: OpenStore
    ) -> None:
        sealed, clear = open_store(encryption=keys()), open_store(search=False)
        for turns in (1, 2):
            await sealed.save("t", state(turns), "c")
            assert await sealed.load("t", "c") == state(turns)
            for _ in range(2):
                with pytest.raises(EncryptionError):
                    await clear.load("t", "c")
            await clear.save("t", state(turns + 2), "c")
            for _ in range(2):
                with pytest.raises(EncryptionError):
                    await sealed.load("t", "c")
                assert await clear.load("t", "c") == state(turns + 2)

    async def test_delta_chains_continue_across_keys(
        self, open_store: OpenStore, run_sql: RunSQL, database: str
    ) -> None:
        await fill(open_store(encryption=keys("2026-10")), turns=4)
        new = open_store(encryption=keys("2026-11"))
        assert await new.load("t") == state(4)
        await fill(new, turns=8, first=5)
        fresh = open_store(encryption=keys("2026-11"), cache_bytes=0)
        for turn in range(1, 9):
            assert await fresh.load("t", str(turn)) == state(turn)
        assert run_sql(f"SELECT COUNT(*) FROM {database}.locus_store_checkpoints WHERE base_seq < seq")[0][0] >= 6
        lacking = open_store(encryption=keys("2026-11", "2026-11"))
        with pytest.raises(EncryptionError, match=r"row .* encrypted with key '2026-10'.*'2026-10' is unknown"):
            await lacking.load("t", "6")

    @pytest.mark.parametrize("compression", ["zlib", "none"])
    async def test_a_payload_takes_at_most_40_bytes_more(
        self, open_store: OpenStore, run_sql: RunSQL, database: str, compression: str
    ) -> None:
        await fill(open_store(encryption=keys(), compression=compression))
        await fill(open_store(table_prefix="clear_", compression=compression))
        sizes = [
            [size for (size,) in run_sql(f"SELECT payload_bytes FROM {database}.{table} ORDER BY seq")]
            for table in ("locus_store_checkpoints", "clear_store_checkpoints")
        ]
        assert len(sizes[0]) == len(sizes[1]) == 8
        assert all(30 <= sealed - clear <= 40 for sealed, clear in zip(*sizes, strict=True))


class TestErrors:
    async def test_search_by_word_is_off(self, open_store: OpenStore, make_config: MakeConfig) -> None:
        store = open_store(encryption=keys())
        with pytest.raises(InvalidInput, match="Search by word is off"):
            await store.search("word")
        with pytest.raises(ValueError, match="exclude each other"):
            make_config(encryption=keys(), search=True)


class TestKeysFromAFunction:
    async def test_a_failure_names_the_key_and_hides_the_message(self, open_store: OpenStore) -> None:
        def ask(key_id: str) -> bytes:
            raise RuntimeError("secret of the KMS")

        store = open_store(encryption=Encryption(keys=ask, active="2026-11"))
        with pytest.raises(EncryptionError, match="raised RuntimeError when asked for key '2026-11'") as caught:
            await store.save("t", {"n": 1})
        assert "secret" not in str(caught.value)


class TestReencrypt:
    async def counts(self, config: MySQLConfig, **options: Any) -> Any:
        async with Database(config) as database:
            (found,) = await reencrypt(database, family="dicts", **options)
            return found

    async def test_writers_go_on_meanwhile(self, open_store: OpenStore, make_config: MakeConfig) -> None:
        old = open_store(encryption=keys("2026-10"))
        await fill(old, turns=4)
        stores = [open_store(encryption=keys("2026-11"), keep_checkpoints=6) for _ in range(3)]

        async def write(store: AnyStore, thread_id: str) -> None:
            for turn in range(1, 30):
                await store.save(thread_id, state(turn), metadata={"turn": turn})

        async def rotate() -> None:
            for _ in range(10):
                await self.counts(make_config(encryption=keys("2026-11")))

        await asyncio.gather(*(write(store, f"w{index % 2}") for index, store in enumerate(stores)), rotate())
        counts = await self.counts(make_config(encryption=keys("2026-11")))
        assert counts.damaged == ()
        fresh = open_store(encryption=keys("2026-11", "2026-11"))
        for thread_id in ("t", "w0", "w1"):
            for one in await fresh.list_checkpoints(thread_id):
                assert await fresh.load(thread_id, one)

    async def test_a_row_that_changes_between_read_and_write_is_left_alone(
        self, open_store: OpenStore, make_config: MakeConfig, run_sql: RunSQL, database: str
    ) -> None:
        store = open_store(encryption=keys("2026-10"), cache_bytes=0)
        await fill(store, turns=2)
        config = make_config(encryption=keys("2026-11"))
        (column,) = reencryption.find_family("dicts").encrypted_columns(config)  # type: ignore[attr-defined]
        operation = reencryption.reseal(column, "dicts", keys("2026-11"))
        async with Database(config) as db:

            def interrupted() -> Any:
                results, step = None, next(operation)
                while True:
                    if step.statements[0].sql.startswith("UPDATE"):
                        run_sql(f"UPDATE {database}.locus_store_checkpoints SET payload = '' WHERE seq = 1")
                    results = yield step
                    try:
                        step = operation.send(results)
                    except StopIteration as end:
                        return end.value

            counts = await db.asynchronous.run(interrupted())
        assert counts.replaced == 1
        assert run_sql(f"SELECT LENGTH(payload) FROM {database}.locus_store_checkpoints WHERE seq = 1") == ((0,),)
