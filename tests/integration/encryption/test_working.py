"""Encrypted sessions keep the contract of storages, and show no equality of values."""

from __future__ import annotations

import pytest

from locus_mysql import Database, SyncWorkingMemory
from locus_mysql.families import reencryption
from locus_mysql.families.working.family import tables

from ..conftest import MakeConfig
from ..connecting import connect
from ..rows_read import rows_read
from .conftest import RunSQL, keys

#: Sessions of a rotation.
SESSIONS = 60


def test_equal_values_and_numbers_are_recognisable_in_no_column(
    make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    with SyncWorkingMemory("s", make_config(driver="pymysql", encryption=keys())) as session:
        session.set_many({"a": 7_777_777, "b": 7_777_777})
        session.increment("a", 1)
        session.increment("a", -1)
        assert session.compare_and_set("b", 7_777_777, 7_777_777)
        assert session.get_all() == {"a": 7_777_777, "b": 7_777_777}
    rows = run_sql(f"SELECT value FROM {database}.locus_working_entries")
    assert rows[0][0] != rows[1][0]
    outcomes = [row[0] for row in run_sql(f"SELECT outcome FROM {database}.locus_working_ledger")]
    assert len(outcomes) == 4
    assert not {7_777_777, 7_777_778, 0, 1} & set(outcomes)


def test_a_rotation_reads_rows_in_proportion_to_the_sessions_values(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index leads from an entry to its session, so a lookup for each page would scan all sessions each time."""
    monkeypatch.setattr(reencryption, "PAGE_ROWS", 10)
    monkeypatch.setattr(reencryption, "PAGE_OWNERS", 10)
    config = make_config(driver="pymysql", encryption=keys("2026-10"))
    with Database(config) as database:
        for number in range(SESSIONS):
            SyncWorkingMemory(f"s{number:03}", database).set_many(dict.fromkeys("abc", "Ada"))
        SyncWorkingMemory("s000", database).set_many({f"v{number:03}": number for number in range(100)})
    entries, _ = tables(config.table_prefix).encrypted_columns()
    with connect(config, str(config.database)) as connection:
        counts, read = rows_read(connection, reencryption.reseal(entries, "working", keys("2026-11")))
        connection.commit()
        again, checked = rows_read(connection, reencryption.reseal(entries, "working", keys("2026-11")))
    values = 3 * SESSIONS + 100
    assert (counts.replaced, counts.rows) == (values, {"2026-10": values})
    assert (again.replaced, again.rows) == (0, {"2026-11": values})
    assert checked < 3 * values  # each row twice, and each session
    assert read < 6 * values  # and each row for its bytes, and for the change
    with SyncWorkingMemory("s000", config.model_copy(update={"encryption": keys("2026-11", "2026-11")})) as session:
        assert len(session.get_all()) == 103
