"""Encoding of embeddings, and upper bounds of scores; with and without NumPy."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.errors import InvalidInput
from locus_mysql.families.memories.vectors import coding, scoring, table
from locus_mysql.families.memories.vectors.coding import HEADER, decode_vector, encode_vector, floats_of, signs_of
from locus_mysql.families.memories.vectors.scoring import METRICS, QueryVector
from locus_mysql.families.memories.vectors.table import CodeTable

floats = st.floats(-(2.0**66), 2.0**66, width=32, allow_subnormal=False)
vectors = st.lists(floats, min_size=5, max_size=5).filter(lambda values: any(abs(value) > 1e-20 for value in values))


@pytest.fixture(params=[True, False], ids=["numpy", "plain"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        for module in (coding, scoring, table):
            monkeypatch.setattr(module, "np", None)
    return bool(request.param)


def test_an_embedding_is_stored_as_the_vector_type_stores_it() -> None:
    coded = encode_vector([1, -2.5, 0.1], 3)
    assert coded.embedding == struct.pack("<3f", 1, -2.5, 0.1)
    assert list(decode_vector(coded.embedding)) == list(struct.unpack("<3f", coded.embedding))


def test_numbers_in_an_array_are_taken_as_those_in_a_list() -> None:
    values = [0.1, -2.5, 1e-46, 3.0]
    for kind in ("<f8", "<f4", ">f8", "<f2"):
        several = numpy.array(values, dtype=kind)
        assert floats_of(several, 4) == floats_of(several.tolist(), 4)
        assert floats_of(several[::2], 2) == floats_of(several[::2].tolist(), 2)
    for wrong in ([1e39, 1], [float("nan"), 1], [float("inf"), 1], [0.0, 0.0], [1.0], [[1.0, 2.0]], []):
        for kind in ("<f8", "<f4"):
            with numpy.errstate(over="ignore"):
                several = numpy.array(wrong, dtype=kind)
            with pytest.raises(InvalidInput):
                floats_of(several, 2)


def test_signs_are_a_bit_per_dimension_the_first_highest() -> None:
    assert signs_of(floats_of([1, -1, 0, 2], None)) == bytes([0b10010000])
    assert signs_of(floats_of([1] * 9, None)) == bytes([0xFF, 0x80])


@given(vectors)
def test_a_code_has_an_error_bound(values: list[float]) -> None:
    coded = encode_vector(values, None, model=7)
    scale, error, norm, model = HEADER.unpack_from(coded.code)
    assert model == coded.model == 7
    steps = struct.unpack("5b", coded.code[HEADER.size :])
    exact = decode_vector(coded.embedding)
    assert math.dist(exact, [scale * step for step in steps]) <= error * (1 + 1e-12)
    assert norm == pytest.approx(math.hypot(*exact), rel=1e-12)
    assert error <= norm


@pytest.mark.parametrize("known", ["codes", "embeddings"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("arithmetic")
def test_no_score_is_above_its_bound_and_bounds_fall(metric: Any, known: str) -> None:
    @given(st.lists(vectors, min_size=1, max_size=12), vectors)
    def check(stored: list[list[float]], asked: list[float]) -> None:
        codes = CodeTable(5)
        coded = [encode_vector(values, 5) for values in stored]
        codes.fill([((b"n\0", b"%d" % index, 0), one.code) for index, one in enumerate(coded)])
        if known == "embeddings" and codes.can_keep_embeddings:
            codes.keep_embeddings()
            for index, one in enumerate(coded):
                codes.add_embedding((b"n\0", b"%d" % index, 0), one.embedding)
            assert codes.has_all_embeddings
        query = QueryVector(floats_of(asked, 5), metric)
        scores = query.scores([one.embedding for one in coded])
        ranked = list(codes.ranked(query))
        assert sorted(one.key for one in ranked) == sorted((b"n\0", b"%d" % index, 0) for index in range(len(stored)))
        assert [one.bound for one in ranked] == sorted((one.bound for one in ranked), reverse=True)
        for (_, name, _), bound, floor in ranked:
            score = scores[int(name)]
            assert floor - 1e-6 * (1 + abs(floor)) <= score <= bound + 1e-9 * abs(bound)

    check()


@pytest.mark.usefixtures("arithmetic")
def test_a_table_contains_the_codes_put_and_not_removed() -> None:
    operation = st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.none() | vectors)

    @given(st.lists(operation, max_size=40), st.booleans())
    def check(operations: list[tuple[str, int, list[float] | None]], keep: bool) -> None:
        codes, expected = CodeTable(5), {}
        for path, index, values in operations:
            key = (path.encode(), b"k", index)
            if values is None:
                codes.remove(key)
                expected.pop(key, None)
            else:
                codes.put(key, encode_vector(values, 5).code)
                expected[key] = values
                if keep:
                    codes.add_embedding(key, encode_vector(values, 5).embedding)
            if keep and codes.can_keep_embeddings:
                codes.keep_embeddings()
        query = QueryVector(floats_of([1, 2, 3, 4, 5], 5), "dot")
        held = codes.scores(query, expected)
        for key, score in held.items():
            assert [score] == query.scores([encode_vector(expected[key], 5).embedding])
        lacking = codes.missing_embeddings(99)
        if not codes.can_keep_embeddings and held:
            assert held.keys() | set(lacking) == expected.keys()
        for key in lacking:
            codes.add_embedding(key, encode_vector(expected[key], 5).embedding)
        assert codes.missing_embeddings(1) == []
        assert {one.key for one in codes.ranked(query)} == expected.keys()
        for key, bound, _ in codes.ranked(query):
            (score,) = query.scores([encode_vector(expected[key], 5).embedding])
            assert score <= bound + 1e-9 * abs(bound)
        codes.remove_path(b"a")
        assert {one.key for one in codes.ranked(query)} == {key for key in expected if key[0] != b"a"}
        codes.remove_path(b"b")
        assert (len(codes), codes.size_bytes) == (0, 0)

    check()


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("begun", [0, 1, 70])
def test_candidates_are_those_of_the_time_of_the_call(begun: int) -> None:
    codes = CodeTable(2)
    coded = {(b"n\0", b"%d" % index, 0): encode_vector([1, index], 2).code for index in range(100)}
    codes.fill(list(coded.items()))
    query = QueryVector(floats_of([0, 1], 2), "dot")
    expected = [one.key for one in codes.ranked(query)]
    candidates = codes.ranked(query)
    seen = [next(candidates).key for _ in range(begun)]
    codes.remove(expected[80])
    codes.put((b"n\0", b"new", 0), coded[expected[0]])
    codes.remove_path(b"n\0")
    codes.fill(list(coded.items())[:3])
    assert seen + [one.key for one in candidates] == expected
    assert len(list(codes.ranked(query))) == 3


def test_codes_of_another_width_are_skipped() -> None:
    codes = CodeTable(5)
    codes.put((b"n\0", b"k", 0), encode_vector([1, 2], None).code)
    assert len(codes) == 0


@pytest.mark.parametrize("dims", [0, 16_384])
def test_widths_have_bounds(dims: int) -> None:
    with pytest.raises(InvalidInput, match="it may have 1 to 16383"):
        floats_of([1.0] * dims, None)
