"""Search by words and by metadata, and statistics, also with a read-only account."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from locus_mysql import CheckpointStore, MySQLConfig
from locus_mysql.errors import InvalidInput
from locus_mysql.families.checkpoints import inspection
from locus_mysql.families.checkpoints.statements import queries
from locus_mysql.families.inspection import statistics as measuring
from locus_mysql.inspection import Inspector

from ....conftest import MakeConfig
from .conftest import RunSQL

pytestmark = pytest.mark.kept_tables


@pytest.fixture
def reader(make_config: MakeConfig, sql: RunSQL) -> Iterator[MySQLConfig]:
    """Yield a configuration whose account may only read these tables."""
    name = f"reader_{secrets.token_hex(6)}"
    sql(f"CREATE USER {name} IDENTIFIED BY 'secret'")
    sql(f"GRANT SELECT ON * TO {name}")
    yield make_config(user=name, password="secret")
    sql(f"DROP USER {name}")


def contents(sql: RunSQL) -> Any:
    """Return all rows of the tables."""
    return [sql(f"SELECT * FROM locus_store_{table} ORDER BY 1, 2, 3") for table in ("threads", "checkpoints")]


async def test_words_are_found_before_and_after_they_are_indexed_and_nothing_is_written(
    store: CheckpointStore, reader: MySQLConfig, sql: RunSQL
) -> None:
    await store.save("t", {"messages": ["met a walrus today"]}, "a")
    await store.save("t", {"messages": ["met a walrus today", "and a xylophonist"]}, "b")
    await store.save("u", {"messages": ["a walrus and a xylophonist"]}, "c")
    async with CheckpointStore(store.database, tenant="other") as other:
        await other.save("theirs", {"messages": ["a walrus"]})
    async with Inspector(reader) as inspector:
        for indexed in (False, True):
            if indexed:
                await store.search("walrus")
            before = contents(sql)
            hits = await inspector.search("walrus", family="dicts")
            assert {(hit.thread_id, hit.checkpoint_id) for hit in hits} == {("t", "a"), ("u", "c")}
            assert all("walrus" in hit.snippet for hit in hits)
            best = (await inspector.search("Xylophonist walrus", family="dicts", limit=1))[0]
            assert (best.family, best.thread_id, best.checkpoint_id) == ("dicts", "u", "c")
            assert await inspector.search("nobody", family="dicts") == []
            assert await inspector.search(' * "" %', family="dicts") == []
            assert await inspector.search("walrus", family="dicts", limit=0) == []
            assert contents(sql) == before


async def test_of_a_word_that_all_texts_hold_a_bounded_number_of_hits_is_looked_at(
    store: CheckpointStore, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "BOUND", 3)
    for number in range(6):
        rare = " xylophonist" if number == 4 else ""
        await store.save(f"t{number}", {"messages": [f"a walrus{rare}"]})
    await store.search("walrus")  # which adds them to the index
    assert len(await inspector.search("walrus", family="dicts")) == 3
    assert (await inspector.search("walrus xylophonist", family="dicts"))[0].thread_id == "t4"


async def test_tables_without_a_full_text_index_cannot_be_searched(make_config: MakeConfig) -> None:
    async with CheckpointStore(make_config(search=False)) as store, Inspector(make_config()) as inspector:
        await store.save("t", {"messages": ["walrus"]}, metadata={"k": 1})
        with pytest.raises(InvalidInput, match="full-text index"):
            await inspector.search("walrus", family="dicts")
        assert len(await inspector.by_metadata("k", 1, family="dicts")) == 1


@pytest.mark.parametrize("bound", [3, 1_000])
async def test_checkpoints_are_found_by_metadata_newest_first(
    store: CheckpointStore, inspector: Inspector, monkeypatch: pytest.MonkeyPatch, sql: RunSQL, bound: int
) -> None:
    monkeypatch.setattr(inspection, "CANDIDATES", bound)
    for number in range(12):
        await store.save(f"t{number % 4}", {"n": number}, f"c{number}", {"kind": "all", "number": number})
    found = await inspector.by_metadata("kind", "all", family="dicts", limit=5)
    assert [one.checkpoint.checkpoint_id for one in found] == ["c11", "c10", "c9", "c8", "c7"]
    (one,) = await inspector.by_metadata("number", 7, family="dicts")
    assert (one.thread_id, one.checkpoint.metadata) == ("t3", {"kind": "all", "number": 7})
    assert await inspector.by_metadata("kind", "none", family="dicts") == []
    sql("UPDATE locus_store_checkpoints SET metadata = '{' WHERE checkpoint_id = 'c11'")
    damaged = (await inspector.by_metadata("kind", "all", family="dicts", limit=2))[0]
    assert damaged.checkpoint.damage is not None


class TestStatistics:
    """Statistics of a family's threads."""

    async def save(self, store: CheckpointStore) -> dict[str, list[int]]:
        """Save threads of different lengths, and return the lengths of their states."""
        sizes: dict[str, list[int]] = {}
        for number in range(15):
            messages: list[str] = []
            for turn in range(number % 5 + 1):
                messages += [secrets.token_hex(500), "x" * 300 * number]
                state = {"turn": turn, "messages": list(messages), "other": messages[-1:], "head": "y" * 50}
                await store.save(f"t{number}", state, metadata={"turn": turn})
                sizes.setdefault(f"t{number}", []).append(len(json.dumps(state, separators=(",", ":"))))
        return sizes

    async def test_of_little_all_is_exact(self, store: CheckpointStore, reader: MySQLConfig) -> None:
        sizes = await self.save(store)
        usage = await store.get_disk_usage()
        async with Inspector(reader) as inspector:
            found = await inspector.statistics("dicts")
        assert (found.family, found.threads, found.checkpoints) == ("dicts", 15, usage["checkpoints"])
        assert (found.size_bytes, found.sampled) == (usage["total_bytes"], None)
        assert found.whole_bytes == sum(sum(of) for of in sizes.values())
        assert sum(day.threads for day in found.days) == 15
        assert sum(day.checkpoints for day in found.days) == usage["checkpoints"]
        assert sum(day.size_bytes for day in found.days) == usage["total_bytes"]
        largest = [one.thread.size_bytes for one in found.largest]
        assert len(largest) == measuring.LARGEST
        assert largest == sorted(largest, reverse=True)
        assert found.largest[0].thread.thread_id == "t14"
        assert found.largest[0].bytes_per_day is None  # younger than a day

    async def test_the_size_of_many_threads_is_estimated_from_a_sample(
        self, store: CheckpointStore, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sizes = await self.save(store)
        for name, bound in {"SAMPLE": 5, "LEAST_SAMPLE": 2}.items():
            monkeypatch.setattr(measuring, name, bound)
        monkeypatch.setattr(inspection, "WHOLE_SAMPLE", 9)
        found = await inspector.statistics("dicts")
        assert found.threads == 15
        assert found.sampled is not None
        assert 0 < found.sampled < 15
        assert 15 <= found.checkpoints <= 75
        assert found.whole_bytes is not None
        assert 0.2 < found.whole_bytes / sum(sum(of) for of in sizes.values()) < 5
        assert found.largest[0].thread.thread_id == "t14"  # the thread with the most saves

    async def test_days_are_those_on_which_something_was_saved(
        self, store: CheckpointStore, inspector: Inspector, sql: RunSQL
    ) -> None:
        for days in (0, 5, 200):
            await store.save(f"t{days}", {}, f"c{days}")
            ago = f"UTC_TIMESTAMP(6) - INTERVAL {days} DAY"
            sql(f"UPDATE locus_store_checkpoints SET created_at = {ago} WHERE checkpoint_id = 'c{days}'")
            sql(f"UPDATE locus_store_threads SET created_at = {ago}, updated_at = {ago}"
                f" WHERE thread_id = 't{days}'")  # fmt: skip
        found = (await inspector.statistics("dicts")).days
        assert [(day.threads, day.checkpoints) for day in found] == [(1, 1), (1, 1)]
        assert [datetime.fromisoformat(day.day).date() for day in found] == sorted(
            datetime.fromisoformat(day.day).date() for day in found
        )
