"""Encoding of embeddings, and the matrix that ranks them; with and without NumPy."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import strategies as st

from locus_mysql.errors import InvalidInput
from locus_mysql.families.memories.vectors import coding, matrix
from locus_mysql.families.memories.vectors.coding import QueryVector, encode_vector, floats_of, signs_of
from locus_mysql.families.memories.vectors.matrix import Matrix

floats = st.floats(-(2.0**66), 2.0**66, width=32, allow_subnormal=False)
vectors = st.lists(floats, min_size=5, max_size=5).filter(lambda values: any(abs(value) > 1e-20 for value in values))


@pytest.fixture(params=[True, False], ids=["numpy", "plain"])
def arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        for module in (coding, matrix):
            monkeypatch.setattr(module, "np", None)
    return bool(request.param)


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


@pytest.mark.usefixtures("arithmetic")
def test_embeddings_of_zeros_have_no_cosine_and_count_as_the_caller_decides() -> None:
    kept: Matrix[str] = Matrix(2)
    raw = {"zero": [0, 0], "same": [1, 0], "other": [-1, 0], "wide": [1, 2, 3]}
    kept.fill(((key, b"front" + encode_vector(values, None).embedding) for key, values in raw.items()), len(b"front"))
    query = QueryVector(floats_of([2, 0], 2), "cosine")
    assert kept.best(query, 9) == [("same", 1.0), ("other", -1.0)]
    assert kept.best(query, 2, undefined=0.0) == [("same", 1.0), ("zero", 0.0)]
