"""Embeddings have one total order, by exact score, path and key, with any implementation."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_mysql.families.memories.vectors import coding, matrix
from locus_mysql.families.memories.vectors.coding import METRICS, QueryVector, encode_vector, floats_of
from locus_mysql.families.memories.vectors.matrix import Matrix

from ....thoroughness import FULL

MODULES = (coding, matrix)


@pytest.fixture(params=[True, False], ids=["numpy", "plain"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        for module in MODULES:
            monkeypatch.setattr(module, "np", None)
    return bool(request.param)


def filled(raw: list[bytes]) -> Matrix[int]:
    found: Matrix[int] = Matrix(len(raw[0]) // 4)
    found.fill(enumerate(raw))
    return found


def raw_of(stored: list[Any]) -> list[bytes]:
    return [encode_vector(values, None).embedding for values in stored]


def searched_over_all(query: QueryVector, raw: list[bytes], wanted: int) -> list[tuple[int, float]]:
    return sorted(enumerate(query.scores(raw)), key=lambda one: (-one[1], one[0]))[:wanted]


def test_of_many_searches_among_near_duplicates_none_is_wrong() -> None:
    random = numpy.random.default_rng(5)
    centres = random.standard_normal((40, 384))
    noise = random.choice([0.0, 1e-7, 1e-3], size=(2_000, 1)) * random.standard_normal((2_000, 384))
    stored = (centres[numpy.arange(2_000) % 40] + noise).astype("<f4")
    raw = [row.tobytes() for row in stored]
    kept, wrong = filled(raw), 0
    for number in range(1_000 if FULL else 120):  # three in each of the 40 clusters
        query = QueryVector(floats_of(stored[number], 384), "cosine")
        cluster = range(number % 40, 2_000, 40)  # the others are far away
        scores = zip(cluster, query.scores([raw[row] for row in cluster]), strict=True)
        wrong += kept.best(query, 10) != sorted(scores, key=lambda one: (-one[1], one[0]))[:10]
    assert wrong == 0


numbers = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1.0000001, 0.1, 3e-20, -7e18])
tied = st.lists(st.lists(numbers, min_size=3, max_size=3).filter(any), min_size=1, max_size=8)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("arithmetic")
def test_the_best_are_those_of_a_search_over_all(metric: Any) -> None:
    @given(tied, st.lists(st.integers(0, 7), min_size=1, max_size=90), st.integers(0, 7), st.integers(1, 100))
    @example([[1.0, 0.0, 0.0]], [0] * 130, 0, 130)
    def check(pool: list[list[float]], copies: list[int], asked: int, wanted: int) -> None:
        stored = [pool[copy % len(pool)] for copy in copies]
        query = QueryVector(floats_of(pool[asked % len(pool)], 3), metric)
        raw = raw_of(stored)
        assert filled(raw).best(query, wanted) == searched_over_all(query, raw, wanted)

    check()


floats = st.floats(-(2.0**66), 2.0**66, width=32, allow_subnormal=True)


@pytest.mark.parametrize("metric", METRICS)
def test_a_score_is_the_same_to_the_last_bit_however_it_is_computed(
    metric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    @given(
        st.integers(1, 40).flatmap(
            lambda dims: st.lists(st.lists(floats, min_size=dims, max_size=dims).filter(any), min_size=2, max_size=9)
        )
    )
    def check(vectors: list[list[float]]) -> None:
        stored = [encode_vector(values, None).embedding for values in vectors]
        together = QueryVector(floats_of(vectors[0], None), metric).scores(stored)
        assert together == [QueryVector(floats_of(vectors[0], None), metric).scores([one])[0] for one in stored]
        with monkeypatch.context() as plain:
            for module in MODULES:
                plain.setattr(module, "np", None)
            assert together == QueryVector(floats_of(vectors[0], None), metric).scores(stored)
        if metric == "cosine":
            assert together[0] == 1.0

    check()


@pytest.mark.parametrize("dims", [1, 2, 3, 383, 384, 1_536, 16_383])
def test_scores_are_those_of_exact_sums_but_for_a_few_roundings(dims: int) -> None:
    random = numpy.random.default_rng(dims)
    one, other = (random.standard_normal(dims).astype("<f4") for _ in range(2))
    square, another = (math.fsum(float(x) * float(x) for x in values) for values in (one, other))
    product = math.fsum(float(x) * float(y) for x, y in zip(one, other, strict=True))
    (cosine,) = QueryVector(floats_of(one, dims), "cosine").scores([other.tobytes()])
    assert cosine == pytest.approx(product / math.sqrt(square * another), rel=1e-12, abs=1e-15)
