"""Encoding of values: a grown list begins with the bytes of the list before."""

from __future__ import annotations

import hashlib
import json
from itertools import takewhile

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.families.graphs.values import Body, EncodedValue, divide


@pytest.mark.parametrize("length", [0, 1, 14, 15, 16, 255, 256, 65_534, 65_535, 65_536])
def test_a_list_in_msgpack_that_grew_begins_with_the_one_before_whatever_header_it_takes(length: int) -> None:
    before = divide(EncodedValue("msgpack", ormsgpack.packb([7] * length)))
    after = divide(EncodedValue("msgpack", ormsgpack.packb([7] * (length + 1))))
    assert after.body == before.body + b"\x07"


@pytest.mark.parametrize("length", [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
def test_texts_bytes_and_dicts_in_msgpack_that_grew_begin_with_those_before(length: int) -> None:
    for small, large in (
        ("x" * length, "x" * (length + 1)),
        (b"x" * length, b"x" * (length + 1)),
        ({str(i): i for i in range(length)}, {str(i): i for i in range(length + 1)}),
    ):
        before, after = (divide(EncodedValue("msgpack", ormsgpack.packb(value))) for value in (small, large))
        assert after.body.startswith(before.body)


@pytest.mark.parametrize(("small", "large"), [([1], [1, 2]), ({"a": 1}, {"a": 1, "b": 2}), ("a", "ab"), ([1], [12])])
def test_json_that_grew_begins_with_the_one_before(small: object, large: object) -> None:
    before, after = (divide(EncodedValue("json", json.dumps(value).encode())) for value in (small, large))
    assert after.body.startswith(before.body)


PIECES = st.lists(st.binary(max_size=40), max_size=6)


@given(PIECES, PIECES, PIECES, st.booleans())
def test_bodies_of_pieces_are_compared_cut_and_hashed_as_their_bytes_are(
    common: list[bytes], mine: list[bytes], theirs: list[bytes], hashed: bool
) -> None:
    before = Body(tuple(common + theirs))
    if hashed:
        assert before.digest
    for data in (tuple(common + mine), (b"".join(common + mine),)):
        body, whole = Body(data, before), b"".join(data)
        assert (body.data, body.length) == (whole, len(whole))
        same = takewhile(lambda pair: pair[0] == pair[1], zip(whole, before.data, strict=False))
        assert body.shared == len(list(same))
        assert body.digest == hashlib.sha256(whole).digest()[:16]
        for start in range(0, len(whole) + 1, 3):
            for end in (*range(start, len(whole) + 1, 7), len(whole)):
                assert body.cut(start, end) == whole[start:end]
