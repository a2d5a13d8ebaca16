"""Payloads are unpacked as they were packed, and damage is detected."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.graphs.chains import Inline, Link, Stored
from locus_mysql.families.graphs.payload import (
    Content,
    number_parts,
    pack,
    pack_write,
    part_identity,
    seal,
    stored_thread,
    unpack,
    unpack_write,
    unseal,
)
from locus_mysql.families.graphs.records import LabelledValue
from locus_mysql.families.graphs.values import EncodedValue
from locus_mysql.runtime.sealing import Sealing

ANY = part_identity(stored_thread("tenant", "t", Sealing(None, "graphs")))

COMPRESSIONS = st.sampled_from(["zlib", "none"])
ENCODED = st.builds(EncodedValue, st.text(max_size=20), st.binary(max_size=300))
LABELS = st.one_of(st.none(), st.text(max_size=40), st.integers(0, 2**70), st.floats(allow_nan=False))
LINKS = st.builds(Link, st.integers(0, 2**53), st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**32 - 1))
VALUES = st.one_of(
    st.builds(Inline, ENCODED),
    st.lists(LINKS, min_size=1, max_size=9).flatmap(
        lambda links: st.builds(
            Stored,
            st.text(max_size=10),
            st.binary(max_size=5),
            st.binary(max_size=1),
            st.just(2 ** (len(links) - 1) - 1),  # a position whose line has this many parts
            st.binary(min_size=16, max_size=16),
            st.just(tuple(links)),
        )
    ),
)


@given(
    st.text(max_size=9),
    ENCODED,
    st.dictionaries(st.text(max_size=30), st.builds(LabelledValue, LABELS, VALUES)),
    COMPRESSIONS,
)
def test_payloads_are_unpacked_in_the_packed_order(
    codec: str, head: EncodedValue, values: dict[str, LabelledValue], compression: Literal["zlib", "none"]
) -> None:
    found = unpack(pack(Content(codec, head, values), compression, ANY), 7, ANY)
    assert (found.codec, found.head) == (codec, head)
    assert list(found.values.items()) == list(number_parts(values, 7).items())


def test_a_row_s_own_parts_get_its_seq() -> None:
    value = Stored("json", b"", b"]", 1, b"d" * 16, (Link(5 * 1024 + 3, 0, 10, 7), Link(1, 10, 20, 8)))
    (held,) = number_parts({"log": LabelledValue(None, value)}, 9).values()
    assert isinstance(held.value, Stored)
    assert held.value.chain == (Link(5 * 1024 + 3, 0, 10, 7), Link(9 * 1024 + 1, 10, 20, 8))


@given(st.binary(max_size=50_000), COMPRESSIONS)
def test_sealed_bytes_are_the_same_when_opened(content: bytes, compression: Literal["zlib", "none"]) -> None:
    assert unseal(seal(content, compression, ANY), ANY) == content


@given(ENCODED, COMPRESSIONS)
def test_a_write_is_the_same_when_read(value: EncodedValue, compression: Literal["zlib", "none"]) -> None:
    assert unpack_write(pack_write(value, compression, ANY), ANY) == value


def test_a_payload_cut_short_is_refused() -> None:
    whole = unseal(
        pack(
            Content(
                "json", EncodedValue("json", b"{}"), {"a": LabelledValue(None, Inline(EncodedValue("json", b"1")))}
            ),
            "none",
            ANY,
        ),
        ANY,
    )
    for end in range(len(whole)):
        with pytest.raises(CorruptCheckpoint):
            unpack(seal(whole[:end], "none", ANY), 1, ANY)
