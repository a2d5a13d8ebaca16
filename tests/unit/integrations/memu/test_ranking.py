"""Nearest records agree with brute force, with and without NumPy; salience follows memU's formula."""

from __future__ import annotations

import json
import math
from array import array
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.families.memories.vectors.coding import encode_floats
from locus_mysql.families.memories.vectors.scoring import QueryVector
from locus_mysql.integrations.memu import ranking
from locus_mysql.integrations.memu.ranking import EmbeddingTable, nearest, salience_factor

floats = st.floats(-100, 100, width=32)
embeddings = st.lists(st.lists(floats, min_size=3, max_size=3), max_size=30)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rows(vectors: list[list[float]]) -> list[ranking.Embedded]:
    return [(f"id{index:02}", index, encode_floats(array("f", vector))) for index, vector in enumerate(vectors)]


def by_force(query: list[float], vectors: list[list[float]], factors: dict[str, float]) -> list[float]:
    scores = []
    for index, vector in enumerate(vectors):
        factor = factors.get(f"id{index:02}")
        lengths = math.hypot(*query) * math.hypot(*vector)
        product = math.fsum(a * b for a, b in zip(query, vector, strict=True))
        if factor is not None:
            scores.append(factor * (product / lengths if lengths else 0.0))
    return sorted(scores, reverse=True)


@pytest.mark.parametrize("numpy", [True, False], ids=["numpy", "python"])
@given(
    vectors=embeddings,
    query=st.lists(floats, min_size=3, max_size=3),
    wanted=st.integers(0, 10),
    data=st.data(),
)
def test_the_nearest_are_those_of_brute_force(
    numpy: bool, vectors: list[list[float]], query: list[float], wanted: int, data: st.DataObject
) -> None:
    found = rows(vectors)
    factors = {id: data.draw(st.sampled_from([1.0, 0.5, 3.0, 0.0])) for id, _, _ in found if data.draw(st.booleans())}
    with pytest.MonkeyPatch.context() as patched:
        if not numpy:
            patched.setattr(ranking, "np", None)
        hits = nearest(QueryVector(array("f", query), "cosine"), EmbeddingTable.of(3, found), factors, wanted)
    scores = [score for _, score in hits]
    assert scores == pytest.approx(by_force(query, vectors, factors)[:wanted], abs=1e-9)
    assert scores == sorted(scores, reverse=True)
    assert len({id for id, _ in hits}) == len(hits)


@pytest.mark.parametrize("numpy", [True, False], ids=["numpy", "python"])
@given(vectors=embeddings, more=embeddings, data=st.data())
def test_a_changed_pool_equals_a_newly_built_one(
    numpy: bool, vectors: list[list[float]], more: list[list[float]], data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        if not numpy:
            patched.setattr(ranking, "np", None)
        table = EmbeddingTable.of(3, rows(vectors))
        kept = [id for id in table.indexes if data.draw(st.booleans())]
        fresh = [(f"new{index}", index, encode_floats(array("f", vector))) for index, vector in enumerate(more)]
        changed = table.changed(3, kept, fresh)
        expected = {id: (mark, raw) for id, mark, raw in rows(vectors) if id in kept}
        expected |= {id: (mark, raw) for id, mark, raw in fresh}
        assert changed.fingerprint[0] == len(expected) == len(changed.ids)
        assert {id: (mark, changed.raw(index)) for id, (index, mark) in changed.indexes.items()} == expected


@pytest.mark.parametrize(
    ("count", "last", "factor"),
    [
        (3, NOW.isoformat(), math.log(4)),
        (3, (NOW - timedelta(days=30)).isoformat(), math.log(4) * math.exp(-0.693)),
        (1, None, math.log(2) / 2),
        (None, None, math.log(2) / 2),
        (None, "2026-01-01T00:00:00", math.log(2)),
        (None, "2026-01-01", math.log(2)),
        (None, "2026-01-01T01:00:00+01:00", math.log(2)),
        (0, NOW.isoformat(), 0.0),
        (-5, NOW.isoformat(), 0.0),
        ("many", "never", math.log(2) / 2),
        (True, 5, math.log(2) / 2),
        (2.5, NOW.isoformat(), math.log(3.5)),
    ],
)
def test_the_factor_of_salience(count: Any, last: Any, factor: float) -> None:
    given = [None if value is None else json.dumps(value) for value in (count, last)]
    assert salience_factor(*given, NOW, 30.0) == pytest.approx(factor)


def test_a_time_far_in_the_future_is_no_overflow() -> None:
    assert math.isfinite(salience_factor(None, '"9999-01-01"', NOW, 0.001))
