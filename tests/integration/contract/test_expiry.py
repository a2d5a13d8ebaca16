"""An owner that has expired is seen by no read, and is written anew. Vacuum: `tests/integration/records`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.families.registry import families

from ..conftest import ONE_OF_EACH
from .conftest import Open
from .samples import SAMPLES, Sample, every_family

RunSQL = Callable[..., tuple[Any, ...]]


def test_every_family_has_a_sample() -> None:
    assert {*SAMPLES} == {family.name for family in families()}


@pytest.mark.parametrize("side", ONE_OF_EACH)
@every_family(lambda sample: sample.expires)
async def test_what_has_expired_is_invisible_and_written_anew(
    sample: Sample,
    open_sample: Open,
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
    for name in ("lasts", "stays", "back"):
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
