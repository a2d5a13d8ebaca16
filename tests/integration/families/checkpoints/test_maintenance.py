"""Vacuum of checkpoints: idle and expired threads, old checkpoints and unneeded rows are removed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput
from locus_mysql.families.checkpoints import maintenance as cleaning
from locus_mysql.records import ledger

from ....thoroughness import FULL
from ...conftest import ONE_OF_EACH
from .conftest import Make, RunSQL
from .test_store import conversation

pytestmark = pytest.mark.kept_tables("dicts")

Age = Callable[..., None]
Expire = Callable[[str], None]


class TestVacuum:
    async def test_vacuum_deletes_an_idle_thread_with_all_its_checkpoints(
        self, store: Any, age: Age, sql: RunSQL
    ) -> None:
        for turn in range(1, 6):
            await store.save("idle", conversation(turn))
            await store.save("active", conversation(turn))
        age(31, "idle")
        assert await store.vacuum(30) == 5
        assert await store.list_threads() == ["active"]
        assert await store.load("idle") is None
        assert len(await store.list_checkpoints("active")) == 5

    async def test_rows_that_nothing_needs_are_removed(self, store: Any, age: Age, sql: RunSQL) -> None:
        for turn in range(1, 17):
            await store.save("t", conversation(turn), str(turn))
        await store.save("t", {"messages": ["begun anew"]}, "new")
        age(31, "t", "16")
        assert await store.vacuum(30) == 16
        ((size,),) = sql("SELECT SUM(LENGTH(payload)) FROM locus_store_checkpoints")
        assert size < 200
        assert await store.search("word") == []

    async def test_text_that_only_removed_checkpoints_contain_is_removed(
        self, store: Any, age: Age, sql: RunSQL
    ) -> None:
        await store.save("t", {"messages": ["secret apple"]}, "one")
        await store.save("t", {"messages": ["another beginning"]}, "two")
        age(31, "t", "one")
        await store.vacuum(30)
        texts = "CONCAT_WS(' ', search_text, pending_text)"
        assert sql(f"SELECT COUNT(*) FROM locus_store_checkpoints WHERE {texts} LIKE '%secret%'") == ((0,),)

    async def test_many_threads_are_removed_page_by_page(self, store: Any, sql: RunSQL) -> None:
        for number in range(230):
            await store.save(f"t{number:03}", {"n": number})
        sql(
            "UPDATE locus_store_threads"
            " SET created_at = created_at - INTERVAL 40 DAY, updated_at = updated_at - INTERVAL 40 DAY"
        )
        await store.save("t100", {"n": "fresh"}, "fresh")
        sql(
            "UPDATE locus_store_checkpoints SET created_at = created_at - INTERVAL 40 DAY"
            " WHERE checkpoint_id <> 'fresh'"
        )
        assert await store.vacuum(30) == 230
        assert await store.list_threads() == ["t100"]
        assert await store.list_checkpoints("t100") == ["fresh"]

    @pytest.mark.slow
    @pytest.mark.parametrize("side", ONE_OF_EACH if FULL else ONE_OF_EACH[1:])
    async def test_many_deleted_ancestors_are_no_hindrance(self, store: Any, age: Age, sql: RunSQL) -> None:
        await store.save("t", {"n": 0}, "first")
        for turn in range(1_100 if FULL else 300):
            await store.save("t", {"m": ["x"] * (turn % 7), "n": turn}, f"c{turn % 2}")
        age(31, "t", "first")
        assert await store.vacuum(30) == 1
        assert await store.list_checkpoints("t") == ["c1", "c0"]
        assert [entry["parent_id"] for entry in await store.history("t")] == ["c0", None]
        assert await store.delete("t", "c1")
        assert await store.delete("t", "c0")
        assert not await store.exists("t")

    @pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "30", None, True, 400_000])
    async def test_an_age_that_is_none_is_refused(self, store: Any, bad: Any) -> None:
        with pytest.raises(InvalidInput, match="older_than_days"):
            await store.vacuum(bad)

    async def test_fractions_of_a_day_count(self, store: Any, age: Age) -> None:
        await store.save("t", {})
        age(0.5, "t")
        assert await store.vacuum(0.6) == 0
        assert await store.vacuum(0.4) == 1

    async def test_saves_remove_expired_threads_a_few_at_a_time(
        self, make_store: Make, sql: RunSQL, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ledger, "one_in", lambda every: every == cleaning.SAVES_PER_CLEANING)
        store = make_store(ttl_s=600)
        for number in range(30):
            await store.save(f"old{number}", conversation(2))
        sql("UPDATE locus_store_threads SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")
        counts = []
        while (not counts or counts[-1]) and len(counts) < 10:
            await store.save("t", {"n": len(counts)}, "same")
            ((left,),) = sql("SELECT COUNT(*) FROM locus_store_threads WHERE thread_id LIKE 'old%%'")
            counts.append(left)
        assert counts[-1] == 0
        assert max(before - after for before, after in zip([30, *counts], counts, strict=False)) <= 10
