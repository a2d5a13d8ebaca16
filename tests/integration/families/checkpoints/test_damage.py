"""Rows damaged or forged by SQL are detected, do not prevent reading other rows, and never make a call hang."""

from __future__ import annotations

import logging
from typing import Any

import pymysql
import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.statements.queries import HISTORY, NEWEST_FIRST
from locus_mysql.families.checkpoints.statements.tables import ThreadKey, checkpoint_dialect

from ...rows_read import RowsRead
from .conftest import Make, RunSQL

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.slow]

#: Cycles of parents or bases in a thread of rows 1 to 8: rows that refer to each other, themselves or later rows.
CIRCLES = {
    "parents": "parent_seq = CASE seq WHEN 2 THEN 4 ELSE parent_seq END",
    "parents of the oldest": "parent_seq = CASE seq WHEN 1 THEN 3 ELSE parent_seq END",
    "own parent": "parent_seq = IF(seq = 3, 3, parent_seq)",
    "all parents": "parent_seq = seq % 8 + 1",
    "bases": "base_seq = CASE seq WHEN 4 THEN 8 ELSE base_seq END",
    "bases of the newest": "base_seq = CASE seq WHEN 8 THEN 7 WHEN 7 THEN 8 ELSE base_seq END",
    "all bases": "base_seq = seq % 8 + 1",
    "own base": "base_seq = seq",
}


@pytest.fixture
def sound_tables() -> None:
    """Skip the check of the tables: these tests damage them on purpose."""


def conversation(turns: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"apple {turn} " + f"word{turn} " * 90} for turn in range(turns)]
    return {"messages": [{"role": "system", "content": "long " * 600}, *messages], "step": turns}


async def fill(store: Any, thread_id: str = "t", turns: int = 8) -> None:
    """Save a thread of rows 1 to ``turns``, each named after its seq."""
    for turn in range(1, turns + 1):
        await store.save(thread_id, conversation(turn), str(turn), metadata={"kind": "talk", "turn": turn})


class TestCircles:
    @pytest.mark.parametrize("circle", CIRCLES)
    async def test_every_call_ends_though_rows_lead_in_a_circle(
        self, make_store: Make, sql: RunSQL, circle: str
    ) -> None:
        store = make_store(cache_bytes=0)
        await fill(store)
        await fill(store, "other")
        for turn in (1, 2, 3, 6):
            await store.delete("t", str(turn))
        sql(f"UPDATE locus_store_checkpoints SET {CIRCLES[circle]} WHERE thread_id = 't'")

        reader = make_store()
        named = ["8", "7", "5", "4"]
        refused = []
        for checkpoint_id in named:
            try:
                assert await reader.load("t", checkpoint_id) == conversation(int(checkpoint_id))
            except CorruptCheckpoint as error:
                refused.append(str(error))
        assert bool(refused) == ("base" in circle)
        assert all("of thread 't'" in words for words in refused)
        assert [entry["checkpoint_id"] for entry in await reader.history("t")] == named
        assert {hit["thread_id"] for hit in await reader.search("apple")} >= {"other"}
        assert "other" in [found["thread_id"] for found in await reader.search_data("step", 8)]
        await reader.save("t", conversation(9), "9")
        await make_store(keep_checkpoints=2).save("t", conversation(9), "10")
        await reader.delete("t", "9")
        sql("UPDATE locus_store_threads SET created_at = created_at - INTERVAL 3 DAY")
        sql("UPDATE locus_store_checkpoints SET created_at = created_at - INTERVAL 3 DAY WHERE seq < 7")
        await reader.vacuum(1)
        await reader.copy_thread("t", "copy")
        assert await reader.load("copy") == conversation(9)
        assert await reader.load("t") == conversation(9)
        assert await reader.load("other") == conversation(8)

    @pytest.mark.parametrize("removal", ["delete", "replace", "prune", "vacuum"])
    async def test_a_state_keeps_its_base_when_its_parent_is_damaged(
        self, make_store: Make, sql: RunSQL, removal: str
    ) -> None:
        store = make_store(cache_bytes=0)
        await fill(store, turns=4)
        ((base,),) = sql("SELECT base_seq FROM locus_store_checkpoints WHERE seq = 4")
        assert base is not None
        if removal == "vacuum":  # the base loses its id, but later rows still build on it
            await store.delete("t", str(base))
        sql("UPDATE locus_store_checkpoints SET parent_seq = NULL WHERE seq > %s", base)
        if removal == "delete":
            await store.delete("t", str(base))
        elif removal == "replace":
            await store.save("t", {"step": 0}, str(base))
        elif removal == "prune":
            await make_store(keep_checkpoints=2).save("t", conversation(5), "5")
        await store.save("other", conversation(1), "1")
        sql("UPDATE locus_store_threads SET created_at = created_at - INTERVAL 3 DAY")
        sql("UPDATE locus_store_checkpoints SET created_at = created_at - INTERVAL 3 DAY WHERE seq = 1")
        await store.vacuum(1)
        assert await make_store().load("t", "4") == conversation(4)

    async def test_a_lineage_longer_than_any_is_a_corrupt_checkpoint(self, make_store: Make, sql: RunSQL) -> None:
        store = make_store()
        await fill(store, turns=1)
        rows = ", ".join(
            f"('default', 't', {seq}, 'c{seq}', {seq - 1}, 0, RANDOM_BYTES(16), 'x', 0, NOW())"
            for seq in range(2, 1_300)
        )
        sql(
            "INSERT INTO locus_store_checkpoints (tenant, thread_id, seq, checkpoint_id, base_seq, continues, token,"
            f" payload, seal, created_at) VALUES {rows}"
        )
        sql("UPDATE locus_store_threads SET last_seq = 1299")
        with pytest.raises(CorruptCheckpoint, match="of thread 't'"):
            await make_store().load("t")
        assert await make_store().search_data("step", 1) == []


@pytest.mark.kept_tables("current", "dicts")
class TestOneAmongOthers:
    async def test_a_damaged_row_does_not_keep_others_from_being_found(
        self, make_store: Make, make_backend: Make, sql: RunSQL, caplog: pytest.LogCaptureFixture
    ) -> None:
        for store, tables in ((make_store(), "locus_store"), (make_backend(), "locus_state")):
            for number in range(120):
                state = {"secret": "sesame", "step": number % 2}
                await store.save(f"t{number}", state, "one", metadata={"kind": "talk"})
            sql(
                f"UPDATE {tables}_checkpoints SET payload = CONCAT(payload, 'x')"
                " WHERE thread_id IN ('t3', 't77', 't119')"
            )
        caplog.set_level(logging.DEBUG, "locus_mysql.damage")

        odd = {f"t{number}" for number in range(1, 120, 2)} - {"t3", "t77", "t119"}
        assert {found["thread_id"] for found in await make_store().search_data("step", 1)} == odd
        found = await make_backend().query_by_metadata("kind", "talk")
        assert len(found) == 100
        assert not {"t3", "t77", "t119"} & {one["thread_id"] for one in found}
        assert len(await make_backend().query_by_metadata("kind", "talk", 1_000)) == 117
        for thread_id in ("t3", "t77", "t119"):
            assert f"row 1 of thread {thread_id!r}" in caplog.text
        assert "sesame" not in caplog.text

    @pytest.mark.parametrize("damage", ['{"kind":"talk"', "[1]", "5", '"secret"'])
    async def test_damaged_metadata_does_not_keep_others_from_being_found(
        self, make_store: Make, make_backend: Make, sql: RunSQL, damage: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        for store, tables in ((make_store(), "locus_store"), (make_backend(), "locus_state")):
            for number in range(3):
                for checkpoint_id in "ab":
                    await store.save(f"t{number}", {"step": 1}, checkpoint_id, metadata={"kind": "talk"})
            sql(f"UPDATE {tables}_checkpoints SET metadata = %s WHERE thread_id = 't1' AND checkpoint_id = 'b'", damage)
        caplog.set_level(logging.DEBUG, "locus_mysql.damage")

        reader = make_store()
        assert {one["thread_id"] for one in await reader.list_with_metadata()} == {"t0", "t2"}
        assert len(await reader.query_by_metadata("kind", "talk")) == 5
        assert len(await make_backend().query_by_metadata("kind", "talk")) == 2
        assert {one["thread_id"] for one in await reader.search_data("step", 1)} == {"t0", "t2"}
        assert [entry["checkpoint_id"] for entry in await reader.history("t1")] == ["a"]
        with pytest.raises(CorruptCheckpoint, match="checkpoint 'b' of thread 't1' does not fit its seal"):
            await reader.load("t1", "b")
        assert await reader.load("t1", "a") == {"step": 1}
        with pytest.raises(CorruptCheckpoint, match="checkpoint 'b' of thread 't1'"):
            await reader.get_metadata("t1")
        assert "checkpoint 'b' of thread 't1'" in caplog.text
        assert "secret" not in caplog.text


@pytest.mark.kept_tables  # a new schema: unpurged deleted rows would be counted as reads
class TestHistory:
    @pytest.fixture
    def handler_reads(self, raw: pymysql.Connection[Any]) -> Any:
        """Return a function that counts the rows that one statement reads."""

        def reads(statement: Any) -> int:
            with raw.cursor() as cursor:
                rows = RowsRead(cursor)
                cursor.execute(statement.sql, statement.params)
                return rows.number()

        return reads

    async def test_only_the_listed_rows_are_read(self, make_store: Make, handler_reads: Any) -> None:
        store = make_store()
        for number in range(400):
            await store.save("t", {"step": number}, str(number))
        newest = await store.history("t", 10)
        assert [(entry["checkpoint_id"], entry["parent_id"]) for entry in newest] == [
            (str(number), str(number - 1)) for number in range(399, 389, -1)
        ]
        key = ThreadKey(MySQLConfig(host="localhost", user="u").tenant, "t")
        assert 10 <= handler_reads(HISTORY(checkpoint_dialect(kind="dicts"), key, limit=10, pieces=NEWEST_FIRST)) < 150


@pytest.mark.kept_tables  # a new schema: full-text indexes keep the words of deleted rows
class TestScores:
    async def test_a_query_of_very_many_words_is_answered(self, make_store: Make) -> None:
        store = make_store()
        await store.save("t", {"messages": ["apple"]})
        many = " ".join(f"x{number}" for number in range(300))
        assert [hit["thread_id"] for hit in await store.search(f"{many} apples apple")] == ["t"]
        assert await store.search("!!! ''' \"\" -- ()") == []
