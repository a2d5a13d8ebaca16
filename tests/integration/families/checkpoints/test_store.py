"""The core of the store: saving, loading, deleting, listing, copying and expiry, on every driver where it matters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput

from ...conftest import EVERY_SIDE
from .conftest import Make, RunSQL

pytestmark = pytest.mark.kept_tables("dicts")

ODD_STATE: dict[str, Any] = {
    "zebra": 1,
    "apple": [1, 2.5, -0.0, True, None, "ä😀中\u0000\u001e'\"\\%s", {"z": 1, "a": [[], {}]}],
    "big": 10**99 + 7,
    "infinite": [math.inf, -math.inf],
    "lone": "\ud800 and \udfff",
    "empty": {"list": [], "dict": {}, "text": ""},
    "": "an empty key",
    "ключ 'with\" quotes`": -(10**99),
}


def conversation(turns: int, words: str = "word") -> dict[str, Any]:
    """Return a state whose list grows by one message a turn, large enough to be stored as a delta."""
    messages = [{"role": "user", "content": f"{words} {turn} " + "x" * 400} for turn in range(turns)]
    return {"run": "r", "messages": messages, "count": turns}


@pytest.mark.parametrize("side", EVERY_SIDE)
class TestOnEveryDriver:
    async def test_a_loaded_state_is_equal_and_has_its_keys_in_the_saved_order(self, store: Any) -> None:
        checkpoint_id = await store.save("t", ODD_STATE, metadata={"ä": ["😀"]})
        loaded = await store.load("t")
        assert loaded == ODD_STATE
        assert list(loaded) == list(ODD_STATE)
        assert list(loaded["apple"][6]) == ["z", "a"]
        assert math.copysign(1, loaded["apple"][2]) == -1
        assert type(loaded["apple"][3]) is bool
        assert await store.load("t", checkpoint_id) == ODD_STATE


async def test_nothing_is_found_of_an_unknown_thread(store: Any) -> None:
    assert await store.load("t") is None
    assert await store.load("t", "c") is None
    assert await store.exists("t") is False
    assert await store.exists("t", "c") is False
    assert await store.delete("t") is False
    assert await store.delete("t", "c") is False
    assert await store.list_checkpoints("t") == []
    assert await store.history("t") == []
    assert await store.get_metadata("t") is None
    assert await store.copy_thread("t", "u") is False
    assert await store.list_threads() == []
    assert await store.list_with_metadata() == []
    assert await store.count() == 0
    assert await store.search("word") == []
    assert await store.query_by_metadata("a", 1) == []
    assert await store.search_data("a", 1) == []
    assert await store.vacuum(0) == 0
    assert await store.forget_tenant() == 0


async def test_an_empty_state_is_a_state(store: Any) -> None:
    await store.save("t", {})
    assert await store.load("t") == {}
    assert await store.exists("t")


class TestReplacing:
    async def test_saving_always_under_one_id_grows_neither_rows_nor_bytes(self, store: Any, sql: RunSQL) -> None:
        for turn in range(40):
            await store.save("t", {"n": turn, "text": f"different {turn}"}, "only")
        ((rows, size),) = sql("SELECT COUNT(*), SUM(LENGTH(payload)) FROM locus_store_checkpoints")
        assert await store.list_checkpoints("t") == ["only"]
        assert rows <= 3
        assert size < 400


class TestHistory:
    async def test_a_list_contains_ids_parents_times_sizes_and_metadata(self, store: Any) -> None:
        await store.save("t", conversation(1), "one", metadata={"step": 1})
        await store.save("t", conversation(2), "two")
        newest, oldest = await store.history("t")
        assert (newest["checkpoint_id"], newest["parent_id"], newest["metadata"]) == ("two", "one", {})
        assert (oldest["checkpoint_id"], oldest["parent_id"], oldest["metadata"]) == ("one", None, {"step": 1})
        assert newest["created_at"] > oldest["created_at"]
        assert newest["created_at"].utcoffset().total_seconds() == 0
        assert newest["size_bytes"] > 0

    async def test_a_branch_has_the_loaded_state_as_its_parent(self, store: Any) -> None:
        for turn in range(1, 5):
            await store.save("t", conversation(turn * 5), str(turn))
        await store.load("t", "2")
        branch = {**conversation(10), "messages": [*conversation(10)["messages"], {"content": "another way"}]}
        await store.save("t", branch, "branch")
        assert (await store.history("t", 1))[0]["parent_id"] == "2"

    async def test_it_is_limited(self, store: Any) -> None:
        for turn in range(5):
            await store.save("t", {"n": turn}, str(turn))
        assert [entry["checkpoint_id"] for entry in await store.history("t", 2)] == ["4", "3"]
        assert await store.history("t", 0) == []


async def test_disk_usage_counts_bytes_by_kind(store: Any, sql: RunSQL) -> None:
    await store.save("t", conversation(20), metadata={"a": 1})
    await store.save("u", {})
    usage, whole = await store.get_disk_usage("t"), await store.get_disk_usage()
    ((payload,),) = sql("SELECT LENGTH(payload) FROM locus_store_checkpoints WHERE thread_id = 't'")
    assert usage["payload_bytes"] == payload
    assert (usage["threads"], usage["checkpoints"], usage["rows"]) == (1, 1, 1)
    assert usage["metadata_bytes"] == len('{"a":1}')
    assert usage["total_bytes"] == usage["payload_bytes"] + usage["search_bytes"] + usage["metadata_bytes"]
    assert whole["threads"] == 2
    assert whole["total_bytes"] > usage["total_bytes"]


async def test_health_reports_version_and_time(store: Any) -> None:
    health = await store.health_check()
    assert health["ok"] is True
    assert health["server_version"][0].isdigit()
    assert health["read_only"] is False
    assert health["server_time"].tzinfo is not None


async def test_a_closed_store_opens_again(store: Any) -> None:
    await store.save("t", {"n": 1})
    await store.close()
    await store.close()
    assert await store.load("t") == {"n": 1}


async def test_compressed_and_plain_rows_are_read_by_both(make_store: Make) -> None:
    squeezing, plain = make_store(), make_store(compression="none")
    for turn in range(1, 12):
        await (plain if turn % 2 else squeezing).save("t", conversation(turn), str(turn))
    for reader in (squeezing, plain):
        for turn in range(1, 12):
            assert await reader.load("t", str(turn)) == conversation(turn)


async def test_without_pipeline_all_is_the_same(make_store: Make) -> None:
    store = make_store(pipeline=False, keep_checkpoints=3, ttl_s=60)
    for turn in range(1, 12):
        await store.save("t", conversation(turn), str(turn % 5))
    assert await store.list_checkpoints("t") == ["1", "0", "4"]
    assert await store.load("t", "0") == conversation(10)
    assert await store.copy_thread("t", "u")
    assert await store.delete("t", "0")
    assert await store.vacuum(0) == 5


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
