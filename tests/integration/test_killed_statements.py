"""Statements that are killed while they run (``KILL QUERY``) fail; none takes a value that was not read for NULL."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pymysql
import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.errors import LocusMySQLError
from locus_mysql.families.transcripts.statements.reading import items_of
from locus_mysql.families.transcripts.statements.tables import RowKey, transcript_dialect
from locus_mysql.families.transcripts.statements.writing import RECORD_REVISION
from locus_mysql.transcripts import NewItem, SyncTranscriptStore, TranscriptKey

from ..thoroughness import FULL
from .conftest import MakeConfig
from .connecting import connect

#: Seconds for which statements are killed. When MySQL read these values by subqueries in expressions, about 1 of 100
#: killed statements returned no item, or stored NULL.
KILLING_S = 8 if FULL else 2

KEY = RowKey("default", b"killed", b"", b"session", b"")


@pytest.fixture
def config(make_config: MakeConfig) -> MySQLConfig:
    config = make_config(driver="pymysql", tenant=KEY.tenant)
    with SyncTranscriptStore(config) as store:
        store.append(
            TranscriptKey("killed", "", "session"), [NewItem(number, f"item {number}") for number in range(20)]
        )
    return config


@contextmanager
def killing(config: MySQLConfig, number: int) -> Iterator[None]:
    """Kill the statements of a connection, about one each millisecond."""
    over = threading.Event()

    def kill() -> None:
        with connect(config) as administrator, administrator.cursor() as cursor:
            while not over.wait(int.from_bytes(os.urandom(1)) / 256_000):
                cursor.execute(f"KILL QUERY {number}")

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_killed_read_of_a_transcript_never_finds_it_empty(config: MySQLConfig) -> None:
    query = items_of(transcript_dialect(config.table_prefix), KEY, last=True, limit=20)
    lengths, until = set[int](), time.monotonic() + KILLING_S
    with connect(config, config.database) as victim, victim.cursor() as cursor, killing(config, victim.thread_id()):
        while time.monotonic() < until:
            with suppress(pymysql.err.OperationalError):
                cursor.execute(query.sql, query.params)
                lengths.add(len(cursor.fetchall()))
    assert lengths == {21}


def test_a_killed_write_never_records_that_it_had_no_outcome(config: MySQLConfig) -> None:
    recorded, killed, until = 0, 0, time.monotonic() + KILLING_S
    with connect(config, config.database) as victim, victim.cursor() as cursor, killing(config, victim.thread_id()):
        while time.monotonic() < until:
            statement = RECORD_REVISION(transcript_dialect(config.table_prefix), KEY, token=os.urandom(16))
            try:
                cursor.execute(statement.sql, statement.params)
                recorded += 1
            except pymysql.err.OperationalError:
                killed += 1
    with connect(config, config.database) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"SELECT COUNT(*), COUNT(outcome) FROM `{config.table_prefix}transcript_ledger` WHERE outcome IS NULL"
        )
        found = cursor.fetchone()
    assert recorded > 0
    assert killed > 0
    assert found == (0, 0)


def test_a_killed_load_of_a_checkpoint_by_its_id_never_returns_another_state(config: MySQLConfig) -> None:
    found, number, until = 0, 0, time.monotonic() + KILLING_S
    alone = config.model_copy(update={"pool_size": 1})
    with SyncCheckpointStore(config) as other, SyncCheckpointStore(alone) as store:
        store.save("t", {"number": number}, "c")
        with connect(config, config.database) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> CONNECTION_ID()",
                (config.database,),
            )
            ((victim,),) = cursor.fetchall()
        with killing(config, victim):
            while time.monotonic() < until:
                number += 1
                other.save("t", {"number": number, "text": "x" * 2_000}, "c")
                for _ in range(10):  # from rows, then from the cache
                    with suppress(LocusMySQLError):  # killed each time that it was repeated
                        assert store.load("t", "c") == {"number": number, "text": "x" * 2_000}
                        found += 1
        stats = store.database.stats()
    assert found > 0
    assert stats.cache_hits > 0
    assert stats.retries > 0
