"""Some saves index the texts of saved states, and none is lost if that does not come to an end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from locus_mysql import CheckpointStore, Database, SyncCheckpointStore
from locus_mysql.dialect import Statement
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.families.checkpoints import maintenance
from locus_mysql.families.checkpoints.maintenance import ThreadMaintenance
from locus_mysql.records import ledger

from ...conftest import EACH_WAY, ONE_OF_EACH, MakeConfig
from ...engines import STATEMENTS_IN_PROGRESS

RunSQL = Callable[..., tuple[Any, ...]]

SOON_S = 30.0

#: How long the indexing of a test takes, in seconds: much longer than a save.
LONG_S = 1.0


@pytest.fixture
def slow_indexing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index after each save, slowly."""
    index = ThreadMaintenance._index_pending

    def slowly(self: ThreadMaintenance) -> Operation[None]:
        yield Batch.of(Statement(f"SELECT SLEEP({LONG_S})"))
        yield from index(self)

    monkeypatch.setattr(ThreadMaintenance, "_index_pending", slowly)
    monkeypatch.setattr(ledger, "one_in", lambda every: every == maintenance.SAVES_PER_INDEXING)


class Saves:
    """A store of either side, whose calls run in one event loop or in this thread.

    Args:
        side: The driver, and ``async`` or ``sync``.
        database: The database.
    """

    def __init__(self, side: str, database: Database) -> None:
        self.database = database
        self.loop = asyncio.new_event_loop() if side.endswith("-async") else None
        self.store: Any = (CheckpointStore if self.loop else SyncCheckpointStore)(database)

    def call(self, method: Callable[..., Any], *args: Any) -> Any:
        outcome = method(*args)
        return self.loop.run_until_complete(outcome) if self.loop else outcome

    def save(self, number: int) -> float:
        """Save a state with a word of its own; return the seconds that it took."""
        begin = time.perf_counter()
        self.call(self.store.save, "t", {"m": [f"word{number}"]}, str(number))
        return time.perf_counter() - begin

    def close(self) -> None:
        if self.loop:
            self.loop.run_until_complete(self.database.aclose())
            self.loop.close()
        else:
            self.database.close()


@pytest.fixture
def saves(make_config: MakeConfig) -> Iterator[Callable[[str], Saves]]:
    """Return ``saves(side)``: a store that is closed after the test."""
    made: list[Saves] = []

    def make(side: str) -> Saves:
        made.append(Saves(side, Database(make_config(driver=side.rpartition("-")[0]))))
        return made[-1]

    yield make
    for one in made:
        if one.loop is None or not one.loop.is_closed():
            one.close()


@pytest.fixture
def unindexed(run_sql: RunSQL, database: str) -> Callable[[], int]:
    """Return a function that returns the number of texts that are not indexed."""
    return lambda: int(run_sql(f"SELECT COUNT(*) FROM {database}.locus_store_checkpoints WHERE unindexed = 1")[0][0])


def killable(run_sql: RunSQL, database: str) -> list[int]:
    """Return the sessions of indexing in progress, once there is one."""
    end = time.monotonic() + SOON_S
    sql = f"SELECT id FROM {STATEMENTS_IN_PROGRESS} WHERE db = %s AND info LIKE '%%SLEEP%%'"
    while not (found := [number for (number,) in run_sql(sql, database)]):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


@pytest.mark.usefixtures("slow_indexing")
@pytest.mark.parametrize("side", EACH_WAY)
def test_a_save_indexes_before_it_returns(
    side: str, saves: Callable[[str], Saves], unindexed: Callable[[], int]
) -> None:
    """So that many processes that save once each, and do not close their stores, index too."""
    one = saves(side)
    assert one.save(0) > LONG_S
    assert unindexed() == 0


@pytest.mark.usefixtures("slow_indexing")
@pytest.mark.parametrize("kill", ["KILL", "KILL QUERY"])
@pytest.mark.parametrize("side", ONE_OF_EACH)
def test_a_save_succeeds_and_a_search_finds_its_text_although_its_indexing_was_killed(
    side: str, kill: str, saves: Callable[[str], Saves], run_sql: RunSQL, database: str
) -> None:
    one = saves(side)
    with ThreadPoolExecutor(1) as threads:
        saving = threads.submit(one.save, 100)
        for number in killable(run_sql, database):
            run_sql(f"{kill} {number}")
        saving.result(timeout=60)
    assert [hit["checkpoint_id"] for hit in one.call(one.store.search, "word100")] == ["100"]
    one.save(101)
