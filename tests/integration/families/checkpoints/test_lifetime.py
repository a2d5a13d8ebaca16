"""The lifetime of checkpoints: copies, expiry, and the number of checkpoints that a thread keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput, ThreadExists

from ...proxy import WireProxy
from .conftest import Make, RunSQL
from .test_store import conversation

pytestmark = pytest.mark.kept_tables("dicts")

Expire = Callable[[str], None]


class TestCopying:
    async def test_a_copy_onto_a_thread_with_checkpoints_changes_nothing(self, store: Any, sql: RunSQL) -> None:
        await store.save("t", conversation(9), "x")
        await store.save("u", conversation(5), "y")
        await store.save("u", conversation(6), "z")
        before = (
            sql("SELECT * FROM locus_store_checkpoints ORDER BY 1, 2, 3"),
            sql("SELECT * FROM locus_store_threads ORDER BY 2"),
        )
        with pytest.raises(ThreadExists, match="'u'"):
            await store.copy_thread("t", "u")
        assert before == (
            sql("SELECT * FROM locus_store_checkpoints ORDER BY 1, 2, 3"),
            sql("SELECT * FROM locus_store_threads ORDER BY 2"),
        )
        await store.save("u", conversation(7), "after")
        assert await store.load("u") == conversation(7)

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
    @pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
    async def test_an_expired_thread_is_invisible_at_once_in_every_read(
        self, make_store: Make, expire: Expire, cache_bytes: int
    ) -> None:
        store = make_store(ttl_s=600, cache_bytes=cache_bytes)
        for turn in range(1, 5):
            await store.save("t", {**conversation(turn), "flag": "here"}, str(turn), {"a": 1})
        assert await store.exists("t")
        expire("t")
        for reader in (store, make_store(ttl_s=600), make_store()):
            assert await reader.load("t") is None
            assert await reader.load("t", "2") is None
            assert not await reader.exists("t")
            assert not await reader.exists("t", "2")
            assert await reader.list_checkpoints("t") == []
            assert await reader.history("t") == []
            assert await reader.list_threads() == []
            assert await reader.list_threads(pattern="t") == []
            assert await reader.count() == 0
            assert await reader.get_metadata("t") is None
            assert await reader.get_metadata("t", "2") is None
            assert await reader.query_by_metadata("a", 1) == []
            assert await reader.search("word") == []
            assert await reader.search_data("flag", "here") == []
            assert await reader.list_with_metadata() == []
        assert await store.delete("t", "2") is False
        assert await store.delete("t") is False

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

    @pytest.mark.parametrize("expired", [True, False])
    async def test_a_delete_whose_answer_was_lost_reports_whether_the_thread_had_expired(
        self, make_store: Make, expire: Expire, proxy: WireProxy, expired: bool
    ) -> None:
        store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", ttl_s=60)
        await store.save("t", {})
        if expired:
            expire("t")
        proxy.drop_after_send()
        assert await store.delete("t") is not expired
        assert await make_store().exists("t") is False


class TestKeepingTheNewest:
    async def test_only_the_newest_are_kept(self, make_store: Make) -> None:
        store = make_store(keep_checkpoints=3)
        for turn in range(1, 21):
            await store.save("t", conversation(turn), str(turn), {"turn": turn})
            kept = [str(number) for number in range(turn, max(0, turn - 3), -1)]
            assert await store.list_checkpoints("t") == kept
        reader = make_store()
        for turn in (18, 19, 20):
            assert await reader.load("t", str(turn)) == conversation(turn)
        assert await reader.load("t", "17") is None
        assert await reader.query_by_metadata("turn", 17) == []

    async def test_a_save_that_pruned_much_and_whose_answer_was_lost_leaves_no_rows_behind(
        self, make_store: Make, proxy: WireProxy
    ) -> None:
        """The repeated call does not get the number of pruned rows. `sound_tables` checks the rows."""
        generous = make_store()
        strict = make_store(keep_checkpoints=1, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
        for turn in range(1, 10):
            await generous.save("t", conversation(turn), str(turn))
        await strict.exists("t")
        proxy.drop_after_send()
        await strict.save("t", {"messages": ["new"]}, "new")
        assert await strict.list_checkpoints("t") == ["new"]

    async def test_unrelated_states_leave_no_rows_behind(self, make_store: Make, sql: RunSQL) -> None:
        store = make_store(keep_checkpoints=2)
        for turn in range(60):
            await store.save("t", {"n": turn, "note": f"note {turn}"})
        ((rows,),) = sql("SELECT COUNT(*) FROM locus_store_checkpoints")
        assert rows <= 4
