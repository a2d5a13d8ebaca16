"""The lifetime of checkpoints: copies, expiry, and the number of checkpoints that a thread keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput

from .conftest import Make, RunSQL

pytestmark = pytest.mark.kept_tables("dicts")

Expire = Callable[[str], None]


class TestCopying:
    async def test_an_expired_thread_cannot_be_copied(self, make_store: Make, expire: Expire) -> None:
        store = make_store(ttl_s=600)
        await store.save("t", {})
        expire("t")
        assert await store.copy_thread("t", "u") is False
        assert not await store.exists("u")

    async def test_a_thread_cannot_be_copied_onto_itself(self, store: Any) -> None:
        await store.save("t", {})
        with pytest.raises(InvalidInput, match="itself"):
            await store.copy_thread("t", "t")


class TestExpiry:
    async def test_every_save_prolongs_a_thread_s_life(self, make_store: Make, sql: RunSQL) -> None:
        store = make_store(ttl_s=600)
        await store.save("t", {"n": 1})
        sql("UPDATE locus_store_threads SET expires_at = UTC_TIMESTAMP(6) + INTERVAL 5 SECOND")
        await store.save("t", {"n": 2})
        ((left,),) = sql("SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), expires_at) FROM locus_store_threads")
        assert 590 <= left <= 600
        assert len(await store.list_checkpoints("t")) == 2

    async def test_a_copy_gets_a_life_of_its_own(self, make_store: Make, expire: Expire) -> None:
        store = make_store(ttl_s=600)
        await store.save("t", {"n": 1})
        await store.copy_thread("t", "u")
        expire("t")
        assert await store.load("u") == {"n": 1}


class TestKeepingTheNewest:
    async def test_unrelated_states_leave_no_rows_behind(self, make_store: Make, sql: RunSQL) -> None:
        store = make_store(keep_checkpoints=2)
        for turn in range(60):
            await store.save("t", {"n": turn, "note": f"note {turn}"})
        ((rows,),) = sql("SELECT COUNT(*) FROM locus_store_checkpoints")
        assert rows <= 4
