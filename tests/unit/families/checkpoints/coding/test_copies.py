"""Copies restore a text exactly, contain what is repeated, and never make a text grow without end."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.families.checkpoints.coding import payload
from locus_mysql.families.checkpoints.coding.payload import (
    Copy,
    copied,
    find_copies,
    inserted_pieces,
)
from locus_mysql.records.framing import DamagedFrame
from locus_mysql.runtime.exact_json import encode_json

from .....thoroughness import FULL
from .stored_rows import message

ITEMS = st.one_of(
    st.integers(0, 9).map(lambda number: {"n": number, "calls": [{"id": number}] * (number % 3)}),
    st.sampled_from([1, None, "},{", ",{", "", [{}], {}, {"": ",{"}]),
)


def text_of(items: list[Any]) -> bytes:
    return encode_json(items)[1:-1]


def restored(older: bytes, text: bytes, found: list[Copy]) -> bytes:
    inserted = b"".join(inserted_pieces(text, found))
    return b"".join(copied(memoryview(older), found, memoryview(inserted)))


def inserted_bytes(found: list[Copy]) -> int:
    return sum(copy.inserted for copy in found)


@given(st.lists(ITEMS, max_size=12), st.data())
@settings(max_examples=2_000 if FULL else 300)
def test_any_edit_of_a_list_is_restored_exactly(older: list[Any], data: st.DataObject) -> None:
    kept = st.sampled_from(older) if older else ITEMS
    newer = data.draw(st.lists(st.one_of(kept, kept, ITEMS), max_size=12))
    with patch.multiple(payload, SMALLEST_COPIED_FROM_BYTES=0, SMALLEST_COPY_BYTES=1):
        found = find_copies(text_of(older), text_of(newer))
    if found:
        assert restored(text_of(older), text_of(newer), found) == text_of(newer)
        assert all(min(copy) >= 0 for copy in found)


BEGUN = [message(number) for number in range(40)]


@pytest.mark.parametrize(
    ("newer", "new_items"),
    [
        pytest.param(BEGUN[10:], 0, id="without the oldest"),
        pytest.param([*BEGUN[1:], message(40)], 1, id="one dropped and one appended"),
        pytest.param([*BEGUN[:10], *BEGUN[20:]], 0, id="without some in the middle"),
        pytest.param([*BEGUN[:10], message(99), *BEGUN[11:]], 1, id="one replaced"),
        pytest.param([message(99), *BEGUN[1:]], 1, id="the first replaced"),
        pytest.param([message(99), *BEGUN], 1, id="one inserted before the others"),
        pytest.param([*BEGUN[20:], *BEGUN[:20]], 0, id="in another order"),
        pytest.param([*BEGUN[:39], message(99)], 1, id="the last replaced"),
        pytest.param([*(message(90) if at % 4 == 1 else one for at, one in enumerate(BEGUN))], 10, id="some cleared"),
    ],
)
def test_only_new_items_are_inserted(newer: list[Any], new_items: int) -> None:
    older, text = text_of(BEGUN), text_of(newer)
    found = find_copies(older, text)
    assert restored(older, text, found) == text
    assert inserted_bytes(found) <= new_items * len(text_of([message(99)])) + 2 * len(found)


def test_nothing_equal_small_texts_and_lists_without_objects_have_no_copies() -> None:
    assert find_copies(text_of(BEGUN), text_of([message(-number) for number in range(1, 40)])) == []
    assert find_copies(text_of(BEGUN[:2]), text_of(BEGUN[1:3])) == []
    assert find_copies(b"", text_of(BEGUN)) == find_copies(text_of(BEGUN), b"") == []
    assert find_copies(text_of(["x" * 99] * 99), text_of(["x" * 99] * 98)) == []


def test_items_repeated_beyond_the_older_text_are_stored_again() -> None:
    older, text = text_of(BEGUN), text_of([BEGUN[3]] * 200)
    assert find_copies(older, text) == []
    with pytest.raises(DamagedFrame, match="another length"):
        copied(memoryview(older), [Copy(0, len(older), 0), Copy(0, 1, 0)], memoryview(b""))
