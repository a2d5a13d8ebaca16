"""Numbers of very many digits are found in any text, in time linear in it."""

from __future__ import annotations

import time

import pytest

from locus_mysql.errors import InvalidInput
from locus_mysql.runtime.exact_json import DIGITS_LIMIT, decode_json, encode_json


@pytest.mark.parametrize("before", [0, 1, DIGITS_LIMIT - 2, DIGITS_LIMIT, 3 * DIGITS_LIMIT + 7])
def test_a_number_of_too_many_digits_is_refused_wherever_it_stands(before: int) -> None:
    longest = 10 ** (DIGITS_LIMIT - 1)
    assert decode_json(encode_json(["x" * before, longest])) == ["x" * before, longest]
    with pytest.raises(InvalidInput, match=f"more than {DIGITS_LIMIT} digits"):
        encode_json(["x" * before, longest * 10])


def test_texts_of_very_many_digits_take_no_longer_than_others() -> None:
    began = time.process_time()
    text = encode_json(["1" * (DIGITS_LIMIT - 10)] * 500)
    assert len(text) > 2_000_000
    assert time.process_time() - began < 5  # some ms; with a search that goes back at each digit, 20 s
