"""A server loses its newest commits while processes run: none of them returns or builds on what is no longer stored."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ..conftest import ONE_OF_EACH
from ..encryption.conftest import RunSQL
from ..lost_tail import Moment, Tables
from .conftest import Open
from .samples import Sample, every_family

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("side", ONE_OF_EACH)
@pytest.mark.parametrize("seed", range(3))
@every_family(kept=False)
async def test_no_process_returns_what_is_no_longer_stored(
    sample: Sample, open_sample: Open, run_sql: RunSQL, database: str, side: str, seed: int
) -> None:
    chosen = random.Random(seed)
    stores = [open_sample(side=side), open_sample(side=side, cache_bytes=0), open_sample(side=side)]
    tables = Tables(run_sql, database)
    await sample.write(stores[0], "a", 0)
    stored, moments = Counter(a=1), list[tuple[Moment, Counter[str]]]()
    for _ in range(50):
        store, name = chosen.choice(stores), chosen.choice("ab")
        match chosen.choices(["write", "delete", "read", "note", "lose"], [12, 1, 8, 4, 3])[0]:
            case "write":
                await sample.write(store, name, stored[name])
                stored[name] += 1
            case "delete":
                await sample.delete(store, name)
                stored[name] = 0
            case "note":
                moments.append((tables.note(), stored.copy()))
            case "lose" if moments:
                moment, before = chosen.choice(moments[-3:])
                tables.put_back(moment)
                stored = before.copy()
        assert await sample.steps(store, name) == [*range(stored[name])]
    for store in (*stores, open_sample(side=side)):
        for name in "ab":
            assert await sample.steps(store, name) == [*range(stored[name])]
