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
    async def test_a_copy_has_every_checkpoint_and_goes_its_own_way(self, store: Any, make_store: Make) -> None:
        for turn in range(1, 12):
            await store.save("t", conversation(turn), str(turn), {"turn": turn})
        assert await store.copy_thread("t", "u") is True
        reader = make_store()
        assert await reader.list_checkpoints("u", 100) == await reader.list_checkpoints("t", 100)
        for turn in range(1, 12):
            assert await reader.load("u", str(turn)) == conversation(turn)
            assert (await reader.get_metadata("u", str(turn)))["metadata"] == {"turn": turn}
        assert [entry["parent_id"] for entry in await reader.history("u")][:2] == ["10", "9"]
        await store.save("u", conversation(12), "12")
        assert await reader.load("t") == conversation(11)
        await store.delete("t")
        assert await make_store().load("u") == conversation(12)
        assert {hit["thread_id"] for hit in await reader.search("word")} == {"u"}

    async def test_a_copy_stands_when_its_bases_were_deleted(self, store: Any, make_store: Make) -> None:
        for turn in range(1, 12):
            await store.save("t", conversation(turn), str(turn))
        for turn in (1, 2, 4, 8, 9):
            await store.delete("t", str(turn))
        await store.copy_thread("t", "u")
        await store.delete("t")
        reader = make_store()
        for turn in (3, 5, 6, 7, 10, 11):
            assert await reader.load("u", str(turn)) == conversation(turn)

    async def test_a_copy_is_the_most_recent_thread(self, store: Any) -> None:
        await store.save("a", {})
        await store.save("b", {})
        await store.copy_thread("a", "c")
        assert await store.list_threads() == ["c", "b", "a"]

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

    async def test_a_copy_onto_a_deleted_thread_works_for_a_process_that_cached_it(
        self, store: Any, make_store: Make
    ) -> None:
        other = make_store()
        await store.save("t", conversation(9))
        await other.save("u", conversation(30, "gone"))
        await store.delete("u")
        await store.copy_thread("t", "u")
        await other.save("u", conversation(31, "gone"))
        assert await store.load("u") == conversation(31, "gone")
        assert len(await store.list_checkpoints("u")) == 2

    async def test_a_copy_onto_an_expired_thread_works(self, make_store: Make, expire: Expire) -> None:
        store = make_store(ttl_s=600)
        await store.save("t", conversation(9), "x")
        for turn in range(1, 5):
            await store.save("u", conversation(turn, "gone"), str(turn))
        expire("u")
        assert await store.copy_thread("t", "u")
        assert await store.list_checkpoints("u") == ["x"]
        assert await store.search("gone") == []

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

    async def test_a_copy_of_a_copy_is_whole(self, store: Any) -> None:
        for turn in range(1, 6):
            await store.save("t", conversation(turn), str(turn))
        await store.copy_thread("t", "u")
        await store.save("u", conversation(6), "6")
        await store.copy_thread("u", "v")
        assert await store.load("v") == conversation(6)
        assert await store.load("v", "2") == conversation(2)


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

    @pytest.mark.parametrize("turns", [1, 20])
    async def test_a_save_to_an_expired_thread_starts_a_new_thread(
        self, make_store: Make, expire: Expire, sql: RunSQL, turns: int
    ) -> None:
        store = make_store(ttl_s=600)
        await store.save("t", conversation(turns, "apple"), "old")
        expire("t")
        await store.save("t", conversation(turns + 1, "apple"), "new")
        assert await store.list_checkpoints("t") == ["new"]
        assert await make_store().load("t") == conversation(turns + 1, "apple")
        assert [entry["parent_id"] for entry in await store.history("t")] == [None]
        assert await store.load("t", "old") is None
        assert {hit["checkpoint_id"] for hit in await store.search("apple")} == {"new"}
        assert sql("SELECT COUNT(*) FROM locus_store_checkpoints") == ((1,),)

    async def test_an_id_of_before_the_expiry_can_be_used_again(self, make_store: Make, expire: Expire) -> None:
        store = make_store(ttl_s=600)
        await store.save("t", conversation(20), "same")
        expire("t")
        await store.save("t", conversation(21), "same")
        assert await store.load("t", "same") == conversation(21)

    async def test_a_store_without_expiry_starts_an_expired_thread_anew_too(
        self, make_store: Make, expire: Expire, sql: RunSQL
    ) -> None:
        expiring, lasting = make_store(ttl_s=600), make_store()
        await expiring.save("t", conversation(3), "old")
        expire("t")
        await lasting.save("t", {"n": 1}, "new")
        assert await lasting.delete("t", "old") is False
        assert await lasting.delete("t", "new") is True
        assert not await lasting.exists("t")
        await lasting.save("t", {"n": 2}, "again")
        assert await lasting.list_checkpoints("t") == ["again"]

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

    async def test_text_of_pruned_checkpoints_is_found_through_the_checkpoints_that_contain_it(
        self, make_store: Make
    ) -> None:
        store = make_store(keep_checkpoints=1)
        words = ["apple", "banana", "cherry"]
        for turn in range(1, 4):
            await store.save("t", {"messages": words[:turn]}, str(turn))
        for word in words:
            assert [hit["checkpoint_id"] for hit in await store.search(word)] == ["3"]

    async def test_fewer_are_kept_from_now_on(self, make_store: Make) -> None:
        generous, strict = make_store(), make_store(keep_checkpoints=2)
        for turn in range(1, 11):
            await generous.save("t", conversation(turn), str(turn))
        await strict.save("t", {"messages": ["another"]}, "new")
        assert await strict.list_checkpoints("t") == ["new", "10"]
        assert await strict.load("t", "10") == conversation(10)

    async def test_a_save_whose_thread_was_made_anew_meanwhile_leaves_no_rows_behind(self, make_store: Make) -> None:
        """The first attempt finds its base deleted and prunes; the second saves. `sound_tables` checks the rows."""
        generous, strict = make_store(), make_store(keep_checkpoints=2)
        await strict.save("t", {"messages": ["a"]})
        await generous.delete("t")
        for turn in range(4):
            await generous.save("t", conversation(turn), str(turn))
        await strict.save("t", {"messages": ["a", "b"]}, "new")
        assert await strict.list_checkpoints("t") == ["new", "3"]

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

    async def test_replacing_counts_as_newest(self, make_store: Make) -> None:
        store = make_store(keep_checkpoints=2)
        for name in ("a", "b", "a", "c"):
            await store.save("t", {"name": name}, name)
        assert await store.list_checkpoints("t") == ["c", "a"]

    async def test_unrelated_states_leave_no_rows_behind(self, make_store: Make, sql: RunSQL) -> None:
        store = make_store(keep_checkpoints=2)
        for turn in range(60):
            await store.save("t", {"n": turn, "note": f"note {turn}"})
        ((rows,),) = sql("SELECT COUNT(*) FROM locus_store_checkpoints")
        assert rows <= 4
