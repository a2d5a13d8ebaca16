"""An owner that has expired is seen by no read, is written anew by a write, and is removed by vacuum, alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import Database
from locus_mysql.families.registry import families, find_family

from ..conftest import ONE_OF_EACH, MakeConfig
from ..encryption.conftest import MARKER
from .conftest import Open
from .samples import SAMPLES, Sample, every_family

RunSQL = Callable[..., tuple[Any, ...]]


def test_every_family_has_a_sample() -> None:
    assert {*SAMPLES} == {family.name for family in families()}


@pytest.mark.parametrize("side", ONE_OF_EACH)
@every_family(lambda sample: sample.expires)
async def test_what_has_expired_is_invisible_written_anew_and_removed_by_vacuum(
    sample: Sample,
    open_sample: Open,
    make_config: MakeConfig,
    run_sql: RunSQL,
    database: str,
    side: str,
) -> None:
    stores = {
        name: open_sample(side=side, ttl_s=ttl) for name, ttl in (("gone", 600), ("lasts", 6_000), ("stays", None))
    }
    for name, store in stores.items():
        await sample.fill(store, name)
    await sample.fill(stores["gone"], "back")
    store = stores["stays"]
    written = {name: await sample.read(store, name) for name in (*stores, "back")}
    assert sorted(await sample.names(store)) == sorted(written)
    assert expire(run_sql, database) >= 2
    assert await sample.read(store, "gone") == await sample.read(open_sample(side=side), "gone") == {}
    assert sorted(await sample.names(store)) == ["lasts", "stays"]
    await sample.fill(store, "back")
    assert await sample.read(store, "back") == written["back"]

    before = stored(run_sql, database)
    family, config = find_family(sample.family), make_config()
    async with Database(config) as opened:
        await opened.asynchronous.run(family.maintenance(config).vacuum(config.tenant), family.schema(config))
    after = stored(run_sql, database)
    assert [row for row in after if f"{MARKER} gone" in row] == []
    for name in ("lasts", "stays", "back"):
        assert {row for row in after if name in row} == {row for row in before if name in row} != set()
        assert await sample.read(store, name) == written[name] != {}


def expire(run_sql: RunSQL, database: str) -> int:
    """Let everything expire that does within an hour, and return the number of rows."""
    soon = "expires_at < UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
    rows = 0
    for (table,) in run_sql(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = %s AND column_name = 'expires_at'",
        database,
    ):
        rows += run_sql(f"SELECT COUNT(*) FROM {database}.{table} WHERE {soon}")[0][0]
        run_sql(f"UPDATE {database}.{table} SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR WHERE {soon}")
    return rows


def stored(run_sql: RunSQL, database: str) -> list[str]:
    """Return every row of the schema as text, but for the records of writes."""
    tables = [name for (name,) in run_sql(f"SHOW TABLES FROM {database}") if not name.endswith("ledger")]
    return [f"{table} {row}" for table in tables for row in run_sql(f"SELECT * FROM {database}.{table}")]
